/** OpenAI's Codex: a static program that speaks Responses. */
import { z } from 'zod';
import { laxInteger } from '../../wire/harbor/lax.ts';
import type { McpServerEntry } from '../../wire/harbor/run-config.ts';
import { agentLogsDir } from '../agent.ts';
import type { Cli, CliCommand, CliTask } from '../installed/cli.ts';
import { readCodexLog } from './codex-log.ts';

/** The variable that the program reads its key from: no other program knows it. */
const keyVariable = 'SLIPWAY_MODEL_KEY';

const targets: Readonly<Record<string, readonly [os: string, target: string]>> = {
  x64: ['linux-x64', 'x86_64-unknown-linux-musl'],
  arm64: ['linux-arm64', 'aarch64-unknown-linux-musl'],
};

const count = laxInteger.refine((value) => value >= 0, 'must not be negative').optional();

export const codexCli: Cli = {
  name: 'codex',
  version: '0.171.0',
  dialect: 'OpenAI Responses',
  programs: (version) => [{ name: 'codex', packages: [`@openai/codex@${version}`] }],
  programPath: programPath(),
  versionPattern: /(\d+\.\d+\.\d+\S*)/,
  options: {
    reasoning_effort: z.string().optional(),
    reasoning_summary: z.string().optional(),
    request_max_retries: count,
    stream_max_retries: count,
    stream_idle_timeout_ms: count,
    model_auto_compact_token_limit: count,
  },
  ownedVariables: [
    'CODEX_ACCESS_TOKEN',
    'CODEX_API_KEY',
    'CODEX_AUTH_JSON_PATH',
    'CODEX_FORCE_AUTH_JSON',
    'CODEX_HOME',
  ],
  command: codexCommand,
  read: readCodexLog,
};

function programPath(): string | null {
  const found = process.platform === 'linux' ? targets[process.arch] : undefined;
  if (found === undefined) return null;
  const [os, target] = found;
  return `node_modules/@openai/codex-${os}/vendor/${target}/bin/codex`;
}

function codexCommand(task: CliTask): CliCommand {
  const { homeDir, program, skillsDir, apiKey, instruction } = task;
  // Its log is on its way out of the sandbox from the first line on: nobody copies it for a run that is cut off.
  const sessions = `${agentLogsDir}/sessions`;
  const lines = [
    `mkdir -p '${sessions}'`,
    `ln -s '${sessions}' '${homeDir}/sessions'`,
    ...(skillsDir === null
      ? []
      : [`mkdir -p '${homeDir}/skills'`, `cp -R ${quoted(skillsDir)}/. '${homeDir}/skills/'`]),
    `${program} exec --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check --json -`,
  ];
  return {
    command: lines.join(' &&\n'),
    env: { CODEX_HOME: homeDir, [keyVariable]: apiKey },
    files: { [`${homeDir}/config.toml`]: configOf(task) },
    stdin: instruction,
  };
}

function configOf({ modelName, baseUrl, options, mcpServers }: CliTask): string {
  const set = (name: string, value: unknown): string[] =>
    value === undefined ? [] : [`${name} = ${JSON.stringify(value)}`];
  return [
    ...set('model', modelName),
    ...set('model_provider', 'slipway'),
    ...set('approval_policy', 'never'),
    ...set('sandbox_mode', 'danger-full-access'),
    ...set('check_for_update_on_startup', false),
    ...set('model_reasoning_effort', options['reasoning_effort']),
    ...set('model_reasoning_summary', options['reasoning_summary']),
    ...set('model_auto_compact_token_limit', options['model_auto_compact_token_limit']),
    '[model_providers.slipway]',
    ...set('name', 'slipway'),
    ...set('base_url', baseUrl),
    ...set('env_key', keyVariable),
    ...set('wire_api', 'responses'),
    ...['request_max_retries', 'stream_max_retries', 'stream_idle_timeout_ms'].flatMap((name) =>
      set(name, options[name]),
    ),
    // Without it each run waits at its end for an address that it does not reach.
    '[analytics]',
    ...set('enabled', false),
    ...mcpServers.flatMap((server) => mcpTable(server)),
    '',
  ].join('\n');
}

/** Texts of JSON are texts of TOML. */
function mcpTable({ name, url, command, args }: McpServerEntry): readonly string[] {
  const head = `[mcp_servers.${JSON.stringify(name)}]`;
  if (command !== null)
    return [head, `command = ${JSON.stringify(command)}`, `args = ${JSON.stringify(args)}`];
  return [head, `url = ${JSON.stringify(url ?? '')}`];
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
