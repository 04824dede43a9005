/** Qwen Code: a program in JavaScript, with a Node of its own beside it, that speaks chat completions. */
import { laxInteger } from '../../wire/harbor/lax.ts';
import type { McpServerEntry } from '../../wire/harbor/run-config.ts';
import { agentLogsDir } from '../agent.ts';
import type { Cli, CliCommand, CliTask } from '../installed/cli.ts';
import { asText, objectIn } from '../installed/log-lines.ts';
import { readQwenLog } from './qwen-log.ts';

const nodeVersion = '24.21.0';
const node = `node-linux-${process.arch}`;

export const qwenCli: Cli = {
  name: 'qwen-coder',
  version: '0.15.10',
  dialect: 'OpenAI Chat Completions',
  programs: (version) => [
    { name: 'qwen-coder', packages: [`@qwen-code/qwen-code@${version}`] },
    { name: 'node', packages: [`${node}@${nodeVersion}`] },
  ],
  programPath:
    process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch)
      ? 'node_modules/@qwen-code/qwen-code/cli.js'
      : null,
  interpreterPath: `node_modules/${node}/bin/node`,
  versionPattern: /(\d+\.\d+\.\d+\S*)/,
  options: {
    max_turns: laxInteger.refine((count) => count >= 1, 'must be at least 1').optional(),
  },
  ownedVariables: [
    'DASHSCOPE_API_KEY',
    'GEMINI_API_KEY',
    'OPENAI_MODEL',
    'QWEN_CODE_API_TIMEOUT_MS',
    'QWEN_HOME',
    'QWEN_MODEL',
    'QWEN_RUNTIME_DIR',
  ],
  command: qwenCommand,
  problemIn: lastApiError,
  read: readQwenLog,
};

function qwenCommand(task: CliTask): CliCommand {
  const { homeDir, program, options, skillsDir, modelName, baseUrl, apiKey, instruction } = task;
  const turns = options['max_turns'];
  // Its log is on its way out of the sandbox from the first line on: nobody copies it for a run that is cut off.
  const sessions = `${agentLogsDir}/sessions`;
  const lines = [
    `mkdir -p '${sessions}'`,
    `ln -s '${sessions}' '${homeDir}/projects'`,
    ...(skillsDir === null
      ? []
      : [
          `mkdir -p '${homeDir}/skills'`,
          `cp -R '${skillsDir.replaceAll("'", `'\\''`)}'/. '${homeDir}/skills/'`,
        ]),
    [
      `${program} --auth-type openai --yolo --chat-recording --output-format stream-json`,
      ...(turns === undefined ? [] : [`--max-session-turns ${JSON.stringify(turns)}`]),
    ].join(' '),
  ];
  return {
    command: lines.join(' &&\n'),
    stdin: instruction,
    files: { [`${homeDir}/settings.json`]: JSON.stringify(settingsOf(task.mcpServers)) },
    env: {
      QWEN_HOME: homeDir,
      OPENAI_BASE_URL: baseUrl,
      OPENAI_API_KEY: apiKey,
      OPENAI_MODEL: modelName,
    },
  };
}

/** It ends well whatever the model's last answer was; an error is told as if it were one. */
function lastApiError(output: string): string | null {
  const last = output.split('\n').findLast((line) => objectIn(line)?.['type'] === 'result');
  const said = asText(objectIn(last ?? '')?.['result']) ?? '';
  return said.startsWith('[API Error') ? said : null;
}

function settingsOf(servers: readonly McpServerEntry[]): Readonly<Record<string, unknown>> {
  return {
    general: { disableAutoUpdate: true, disableUpdateNag: true },
    privacy: { usageStatisticsEnabled: false },
    telemetry: { enabled: false },
    mcpServers: Object.fromEntries(
      servers.map(({ name, transport, url, command, args }) => [
        name,
        command === null ? { [transport === 'sse' ? 'url' : 'httpUrl']: url } : { command, args },
      ]),
    ),
  };
}
