/** OpenCode: a program of its own runtime that speaks chat completions, as the provider that its configuration describes. */
import { z } from 'zod';
import { laxInteger } from '../../wire/harbor/lax.ts';
import type { McpServerEntry } from '../../wire/harbor/run-config.ts';
import type { Cli, CliCommand, CliTask } from '../installed/cli.ts';
import { asObject, asText, jsonObjectsIn } from '../installed/log-lines.ts';
import { programAt } from '../installed/places.ts';
import { promptEvent, readOpencodeLog } from './opencode-log.ts';

/** The build that needs no particular processor of its kind. */
const packages: Readonly<Record<string, string>> = {
  x64: 'opencode-linux-x64-baseline',
  arm64: 'opencode-linux-arm64',
};
/** What its tools search with; without it they would fetch one from an address that is out of reach. */
const searchPackage = `@vscode/ripgrep-linux-${process.arch}`;
const searchVersion = '1.18.0';
const packageName = process.platform === 'linux' ? packages[process.arch] : undefined;

const provider = 'slipway';
const count = laxInteger.refine((value) => value >= 1, 'must be at least 1').optional();

/** What the configuration says of the model is not the user's. */
const ownedSettings = [
  ...['disabled_providers', 'enabled_providers', 'model', 'provider', 'small_model'],
];
const isOwned = (name: string): boolean =>
  ownedSettings.includes(name.toLowerCase().replaceAll('-', '_'));

export const opencodeCli: Cli = {
  name: 'opencode',
  version: '1.18.33',
  dialect: 'OpenAI Chat Completions',
  programs: (version) => [
    {
      name: 'opencode',
      packages: [`${packageName ?? ''}@${version}`, `${searchPackage}@${searchVersion}`],
    },
  ],
  programPath: packageName === undefined ? null : `node_modules/${packageName}/bin/opencode`,
  versionPattern: /(\d+\.\d+\.\d+\S*)/,
  options: {
    reasoning_effort: z.string().optional(),
    context_tokens: count,
    max_output_tokens: count,
    opencode_config: z
      .record(z.string(), z.unknown())
      .refine((given) => !Object.keys(given).some(isOwned), {
        error: `must not set ${ownedSettings.join(', ')}`,
      })
      .optional(),
  },
  ownedVariables: [
    'OPENCODE_API_KEY',
    'OPENCODE_AUTH_CONTENT',
    'OPENCODE_CONFIG',
    'OPENCODE_CONFIG_CONTENT',
    'OPENCODE_CONFIG_DIR',
    'OPENCODE_CONSOLE_TOKEN',
  ],
  command: opencodeCommand,
  problemIn: lastError,
  read: readOpencodeLog,
};

function opencodeCommand(task: CliTask): CliCommand {
  const { homeDir, program, skillsDir, instruction } = task;
  const prompt = `${homeDir}/prompt.json`;
  const skills = `${homeDir}/config/opencode/skills`;
  const lines = [
    ...(skillsDir === null
      ? []
      : [`mkdir -p '${skills}'`, `cp -R '${skillsDir.replaceAll("'", `'\\''`)}'/. '${skills}/'`]),
    // Its output is its log, in which nobody else says what was asked.
    `cat '${prompt}'`,
    // One of the image's own comes first.
    `export PATH="$PATH:${programAt('opencode')}/node_modules/${searchPackage}/bin"`,
    // With a title of its own it does not ask the model for one.
    `${program} run --format json --thinking --auto --title task`,
  ];
  return {
    command: lines.join(' &&\n'),
    stdin: instruction,
    files: { [prompt]: `${JSON.stringify(promptEvent(instruction))}\n` },
    env: {
      // Over all other places of settings, those of the folder that it works in included.
      OPENCODE_CONFIG_CONTENT: JSON.stringify(configOf(task)),
      OPENCODE_DISABLE_AUTOUPDATE: '1',
      OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
      OPENCODE_DISABLE_MODELS_FETCH: '1',
      XDG_CACHE_HOME: `${homeDir}/cache`,
      XDG_CONFIG_HOME: `${homeDir}/config`,
      XDG_DATA_HOME: `${homeDir}/data`,
      XDG_STATE_HOME: `${homeDir}/state`,
    },
  };
}

function configOf({
  modelName,
  baseUrl,
  apiKey,
  options,
  mcpServers,
}: CliTask): Readonly<Record<string, unknown>> {
  const effort = options['reasoning_effort'];
  return {
    autoupdate: false,
    share: 'disabled',
    // It would keep the folder in a repository of its own, once for each call of the model.
    snapshot: false,
    mcp: Object.fromEntries(mcpServers.map((server) => [server.name, mcpEntry(server)])),
    ...asObject(options['opencode_config']),
    model: `${provider}/${modelName}`,
    small_model: `${provider}/${modelName}`,
    enabled_providers: [provider],
    provider: {
      [provider]: {
        npm: '@ai-sdk/openai-compatible',
        name: provider,
        // A generation may take an hour, and be silent for most of it.
        options: {
          ...{ baseURL: baseUrl, apiKey },
          ...{ timeout: false, headerTimeout: false, chunkTimeout: false },
        },
        models: {
          [modelName]: {
            ...{ name: modelName, tool_call: true, reasoning: true },
            limit: {
              context: options['context_tokens'] ?? 128_000,
              output: options['max_output_tokens'] ?? 8_192,
            },
            ...(effort !== undefined && { options: { reasoningEffort: effort } }),
          },
        },
      },
    },
  };
}

function mcpEntry({ url, command, args }: McpServerEntry): Readonly<Record<string, unknown>> {
  return command === null
    ? { type: 'remote', url }
    : { type: 'local', command: [command, ...args] };
}

/** It may end well after an error that ended its work. */
function lastError(output: string): string | null {
  const last = jsonObjectsIn(output).findLast((event) => event['type'] === 'error');
  const error = asObject(last?.['error']);
  if (error === null) return null;
  const { message } = asObject(error['data']) ?? {};
  return `${asText(error['name']) ?? 'error'}: ${asText(message) ?? JSON.stringify(error)}`;
}
