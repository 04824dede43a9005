/** mini-swe-agent: a loop in Python around one shell tool. It asks for whole answers, not for streams. */
import { z } from 'zod';
import { laxInteger } from '../../wire/harbor/lax.ts';
import { agentLogsDir } from '../agent.ts';
import type { Cli, CliCommand, CliTask } from '../installed/cli.ts';
import { programAt } from '../installed/places.ts';
import { packagesFolder } from '../installed/python/own-python.ts';
import { pythonProgram } from '../installed/python/python-program.ts';
import { miniLock, miniVersion } from './lock.ts';
import { miniLogName, readMiniLog } from './mini-log.ts';

const name = 'mini-swe-agent';
const config = `${programAt(name)}/${packagesFolder}/minisweagent/config/mini.yaml`;
/** A call of the model ends with the trial at the latest; its own limit is ten minutes. */
const longestCallSec = 24 * 60 * 60;

const atLeastOne = laxInteger.refine((count) => count >= 1, 'must be at least 1').optional();

export const miniCli: Cli = {
  name,
  version: miniVersion,
  dialect: 'OpenAI Chat Completions',
  ...pythonProgram({
    ...{ name, distribution: name, version: miniVersion, script: 'mini' },
    pythons: ['3.13', '3.12', '3.11', '3.14'],
    lock: miniLock,
  }),
  options: {
    max_turns: atLeastOne,
    max_tokens: atLeastOne,
    command_timeout_sec: atLeastOne,
    reasoning_effort: z.string().optional(),
  },
  ownedVariables: [
    'LITELLM_MODEL_REGISTRY_PATH',
    'LITELLM_PROXY_API_BASE',
    'LITELLM_PROXY_API_KEY',
    'MSWEA_API_KEY',
    'MSWEA_CONFIG_DIR',
    'MSWEA_GLOBAL_CONFIG_DIR',
    'MSWEA_MINI_CONFIG_PATH',
    'MSWEA_MODEL_API_KEY',
    'MSWEA_MODEL_NAME',
    'OPENAI_ORGANIZATION',
    'OPENAI_ORG_ID',
    'OPENAI_PROJECT_ID',
  ],
  command: miniCommand,
  read: readMiniLog,
};

function miniCommand(task: CliTask): CliCommand {
  const { homeDir, program } = task;
  const own = `${homeDir}/run.yaml`;
  return {
    command: [
      `${program} --yolo --exit-immediately --cost-limit 0`,
      `--config ${config} --config '${own}' --output ${agentLogsDir}/${miniLogName}`,
    ].join(' '),
    // JSON is YAML; as an argument the instruction would have a limit.
    files: { [own]: JSON.stringify(settingsOf(task)) },
    env: {
      MSWEA_GLOBAL_CONFIG_DIR: homeDir,
      MSWEA_CONFIGURED: 'true',
      MSWEA_COST_TRACKING: 'ignore_errors',
      // Else it fetches a list of prices when it starts.
      LITELLM_LOCAL_MODEL_COST_MAP: 'True',
      // Its usual one breaks lines where the frame of a terminal would be.
      TYPER_STANDARD_TRACEBACK: '1',
    },
  };
}

function settingsOf({ modelName, options, baseUrl, apiKey, ...task }: CliTask): unknown {
  return {
    run: { task: instructionOf(task) },
    agent: { step_limit: options['max_turns'] },
    environment: { timeout: options['command_timeout_sec'] },
    model: {
      model_class: 'litellm',
      model_name: `openai/${modelName}`,
      model_kwargs: {
        // Here and not in variables: commands of its shell would have those.
        ...{ api_base: baseUrl, api_key: apiKey },
        timeout: longestCallSec,
        max_tokens: options['max_tokens'],
        reasoning_effort: options['reasoning_effort'],
      },
    },
  };
}

/** It knows neither servers of tools nor skills: the model is told where they are. */
function instructionOf({
  instruction,
  mcpServers,
  skillsDir,
}: Pick<CliTask, 'instruction' | 'mcpServers' | 'skillsDir'>): string {
  const servers = mcpServers.map(({ name: server, transport, url, command, args }) =>
    command === null
      ? `- ${server}: ${transport} at ${url ?? ''}`
      : `- ${server}: started by ${[command, ...args].join(' ')}`,
  );
  return [
    instruction,
    ...(servers.length === 0 ? [] : ['', 'Servers of the Model Context Protocol:', ...servers]),
    ...(skillsDir === null ? [] : ['', `Skills are described in the folders of ${skillsDir}.`]),
  ].join('\n');
}
