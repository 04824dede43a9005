/** Anthropic's Claude Code: a native program that speaks Messages. */
import { z } from 'zod';
import { laxInteger } from '../../wire/harbor/lax.ts';
import type { McpServerEntry } from '../../wire/harbor/run-config.ts';
import { agentLogsDir } from '../agent.ts';
import type { Cli, CliCommand, CliTask } from '../installed/cli.ts';
import { readClaudeLog } from './claude-log.ts';

const efforts = ['low', 'medium', 'high', 'xhigh', 'max', 'ultracode'] as const;
const text = z.string().min(1).optional();

/** They name another account, cloud, key or address than the trial's. */
const identityVariables = [
  ...['ANTHROPIC_AUTH_TOKEN', 'ANTHROPIC_BASE_URL', 'ANTHROPIC_API_KEY'],
  ...['ANTHROPIC_FOUNDRY_API_KEY', 'ANTHROPIC_FOUNDRY_BASE_URL', 'ANTHROPIC_FOUNDRY_RESOURCE'],
  ...['ANTHROPIC_SMALL_FAST_MODEL_AWS_REGION', 'ANTHROPIC_VERTEX_BASE_URL'],
  ...['ANTHROPIC_VERTEX_PROJECT_ID', 'AWS_ACCESS_KEY_ID', 'AWS_BEARER_TOKEN_BEDROCK'],
  ...['AWS_PROFILE', 'AWS_REGION', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'],
  ...['CLAUDE_CODE_OAUTH_TOKEN', 'CLAUDE_CODE_USE_BEDROCK', 'CLAUDE_CODE_USE_FOUNDRY'],
  ...['CLAUDE_CODE_USE_VERTEX', 'CLAUDE_FORCE_OAUTH', 'CLOUD_ML_REGION'],
  ...['GOOGLE_APPLICATION_CREDENTIALS', 'GOOGLE_CLOUD_PROJECT'],
];

export const claudeCli: Cli = {
  name: 'claude-code',
  version: '2.1.332',
  dialect: 'Anthropic Messages',
  programs: (version) => [
    { name: 'claude-code', packages: [`@anthropic-ai/claude-code@${version}`] },
  ],
  programPath:
    process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch)
      ? `node_modules/@anthropic-ai/claude-code-linux-${process.arch}/claude`
      : null,
  versionPattern: /(\d+\.\d+\.\d+\S*)/,
  options: {
    max_turns: laxInteger.refine((count) => count >= 1, 'must be at least 1').optional(),
    reasoning_effort: z.enum(efforts).optional(),
    max_thinking_tokens: laxInteger.refine((count) => count >= 0, 'is negative').optional(),
    append_system_prompt: text,
    allowed_tools: text,
    disallowed_tools: text,
  },
  ownedVariables: identityVariables,
  refusal: bedrockOfTheHost,
  command: claudeCommand,
  read: readClaudeLog,
};

/** Somebody means another cloud by them; that they are not heeded must not be found out by an invoice. */
function bedrockOfTheHost(variables: Readonly<Record<string, string | undefined>>): string | null {
  const active = [
    ...(variables['CLAUDE_CODE_USE_BEDROCK']?.trim() === '1' ? ['CLAUDE_CODE_USE_BEDROCK'] : []),
    ...((variables['AWS_BEARER_TOKEN_BEDROCK'] ?? '').trim() === ''
      ? []
      : ['AWS_BEARER_TOKEN_BEDROCK']),
  ];
  return active.length === 0
    ? null
    : `${active.join(' and ')} of this process would send its calls to Bedrock: unset what is set`;
}

function claudeCommand(task: CliTask): CliCommand {
  const { program, options, skillsDir, modelName, baseUrl, apiKey, instruction } = task;
  const configDir = `${agentLogsDir}/sessions`;
  const flags = [
    ...['max_turns', 'append_system_prompt', 'allowed_tools', 'disallowed_tools'].flatMap((name) =>
      flagOf(`--${name.replaceAll('_', '-').replace('-tools', 'Tools')}`, options[name]),
    ),
    ...flagOf('--effort', options['reasoning_effort']),
  ];
  const lines = [
    `mkdir -p ${configDir}`,
    ...(skillsDir === null
      ? []
      : [`mkdir -p ${configDir}/skills`, `cp -R ${quoted(skillsDir)}/. ${configDir}/skills/`]),
    [
      `${program} --print --verbose --output-format=stream-json`,
      '--permission-mode=bypassPermissions --dangerously-skip-permissions',
      ...flags,
    ].join(' '),
  ];
  const thinking = options['max_thinking_tokens'];
  return {
    command: lines.join(' &&\n'),
    stdin: instruction,
    files: { [`${configDir}/.claude.json`]: JSON.stringify(settingsOf(task.mcpServers)) },
    env: {
      // The program appends /v1/messages.
      ANTHROPIC_BASE_URL: baseUrl.replace(/\/v1$/, ''),
      ANTHROPIC_API_KEY: apiKey,
      ANTHROPIC_MODEL: modelName,
      ...Object.fromEntries(
        ['SMALL_FAST_MODEL', 'DEFAULT_SONNET_MODEL', 'DEFAULT_OPUS_MODEL', 'DEFAULT_HAIKU_MODEL'] //
          .map((name) => [`ANTHROPIC_${name}`, modelName]),
      ),
      CLAUDE_CODE_SUBAGENT_MODEL: modelName,
      CLAUDE_CONFIG_DIR: configDir,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      // A reply would be asked for twice, and the first one is on record.
      CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK: '1',
      CLAUDE_CODE_ATTRIBUTION_HEADER: '0',
      DISABLE_AUTOUPDATER: '1',
      FORCE_AUTO_BACKGROUND_TASKS: '1',
      ENABLE_BACKGROUND_TASKS: '1',
      // As root it refuses to go without asking, except in a sandbox.
      IS_SANDBOX: '1',
      ...(thinking !== undefined && { MAX_THINKING_TOKENS: `${Number(thinking)}` }),
    },
  };
}

function settingsOf(servers: readonly McpServerEntry[]): Readonly<Record<string, unknown>> {
  if (servers.length === 0) return {};
  return {
    mcpServers: Object.fromEntries(
      servers.map(({ name, transport, url, command, args }) => [
        name,
        command === null
          ? { type: transport === 'sse' ? 'sse' : 'http', url }
          : { type: 'stdio', command, args },
      ]),
    ),
  };
}

function flagOf(flag: string, value: unknown): readonly string[] {
  return value === undefined
    ? []
    : [`${flag} ${quoted(typeof value === 'string' ? value : JSON.stringify(value))}`];
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
