/**
 * aider: a loop in Python that calls no tools. What the model says in its edit format becomes files, and what a linter finds wrong in these goes back to the model;
 * commands that the model suggests are not run. It asks for whole answers here: of those it records the usage, of streams it does not.
 */
import { z } from 'zod';
import { laxInteger, laxNumber } from '../../wire/harbor/lax.ts';
import { agentLogsDir } from '../agent.ts';
import type { Cli, CliCommand, CliTask } from '../installed/cli.ts';
import { pythonProgram } from '../installed/python/python-program.ts';
import { eventsName, modelLogName, readAiderLog } from './aider-log.ts';
import { aiderLock, aiderVersion } from './lock.ts';

const name = 'aider';
/** A call of the model ends with the trial at the latest; its own limit is ten minutes. */
const longestCallSec = 24 * 60 * 60;
/** Its older messages are summarised by the model from so many tokens on. */
const neverSummarised = 1_000_000_000;
/** It ends well whatever became of its last call. */
const noAnswer = '[the last call of the model brought no answer]';

/** They name another model, key or account. */
const ownedVariables = [
  'AIDER_API_KEY',
  'AIDER_CONFIG',
  'AIDER_EDITOR_MODEL',
  'AIDER_ENV_FILE',
  'AIDER_MODEL',
  'AIDER_MODEL_METADATA_FILE',
  'AIDER_MODEL_SETTINGS_FILE',
  'AIDER_OPENAI_API_BASE',
  'AIDER_OPENAI_API_KEY',
  'AIDER_SET_ENV',
  'AIDER_WEAK_MODEL',
  'OPENAI_ORGANIZATION',
  'OPENAI_ORG_ID',
  'OPENAI_PROJECT_ID',
];

export const aiderCli: Cli = {
  name,
  version: aiderVersion,
  dialect: 'OpenAI Chat Completions',
  ...pythonProgram({
    ...{ name, distribution: 'aider-chat', version: aiderVersion, script: 'aider' },
    pythons: ['3.12', '3.11'],
    lock: aiderLock,
  }),
  options: {
    edit_format: z.enum(['whole', 'diff', 'diff-fenced', 'udiff']).optional(),
    map_tokens: laxInteger.refine((count) => count >= 0, 'must be at least 0').optional(),
    max_tokens: laxInteger.refine((count) => count >= 1, 'must be at least 1').optional(),
    reasoning_effort: z.string().optional(),
    temperature: laxNumber.refine((value) => value >= 0, 'must be at least 0').optional(),
  },
  ownedVariables,
  command: aiderCommand,
  problemIn: problemOfLastCall,
  read: readAiderLog,
};

function aiderCommand({ homeDir, program, instruction, ...task }: CliTask): CliCommand {
  const flags = ['edit_format', 'map_tokens'].flatMap((name) => {
    const value = task.options[name];
    return value === undefined ? [] : [`--${name.replace('_', '-')} ${JSON.stringify(value)}`];
  });
  const model = quoted(`openai/${task.modelName}`);
  const settings = `${homeDir}/model-settings.yml`;
  const message = `${homeDir}/message.md`;
  const log = `${agentLogsDir}/${modelLogName}`;
  const line = [
    `${program} --yes-always --model ${model} --weak-model ${model} --editor-model ${model}`,
    ...flags,
    `--max-chat-history-tokens ${neverSummarised}`,
    `--model-settings-file '${settings}' --message-file '${message}'`,
    `--llm-history-file ${log} --chat-history-file ${agentLogsDir}/aider.chat.history.md`,
    `--input-history-file '${homeDir}/input' --analytics-log ${agentLogsDir}/${eventsName}`,
    // Without one it would make a repository in the folder of the task.
    '$(git rev-parse --git-dir > /dev/null 2>&1 || echo --no-git)',
    '--no-auto-commits --no-dirty-commits --no-gitignore',
    '--no-suggest-shell-commands --no-detect-urls --disable-playwright',
    '--no-stream --no-pretty --no-fancy-input',
    '--no-analytics --no-check-update --no-show-release-notes --no-show-model-warnings',
  ].join(' ');
  return {
    command: [
      // One that is set to nothing it would read too, and refuse.
      `unset ${ownedVariables.join(' ')}`,
      line,
      'ended=$?',
      // An answer is never an empty line there.
      `if [ -f ${log} ] && [ -z "$(tail -n 1 ${log})" ]; then echo '${noAnswer}'; fi`,
      '(exit $ended)',
    ].join('\n'),
    files: {
      // JSON is YAML.
      [settings]: JSON.stringify([{ name: 'aider/extra_params', extra_params: paramsOf(task) }]),
      // What begins with these is a command of its own.
      [message]: /^[/!]/.test(instruction) ? `\n${instruction}` : instruction,
      // Else it fetches a list of prices when it starts.
      [`${homeDir}/.aider/caches/model_prices_and_context_window.json`]: '{"-": {}}',
      // Else it names a user in the settings of the task's repository.
      [`${homeDir}/.gitconfig`]:
        '[safe]\n\tdirectory = *\n[user]\n\tname = aider\n\temail = aider@localhost\n',
    },
    env: {
      HOME: homeDir,
      LITELLM_LOCAL_MODEL_COST_MAP: 'True',
      // With every failure it opens a page that explains it.
      BROWSER: 'true',
    },
  };
}

function paramsOf({ options, baseUrl, apiKey }: Pick<CliTask, 'options' | 'baseUrl' | 'apiKey'>) {
  const { max_tokens, temperature, reasoning_effort } = options;
  return {
    // Here and not in variables: the folder of the task may have a file that sets those.
    ...{ api_base: baseUrl, api_key: apiKey, timeout: longestCallSec },
    ...{ max_tokens, temperature },
    ...(reasoning_effort !== undefined && { extra_body: { reasoning_effort } }),
  };
}

function problemOfLastCall(output: string): string | null {
  const said = output.trimEnd();
  const hasFailed = said.endsWith(noAnswer) || /hit\sa\stoken\slimit![\s\S]{0,1500}$/.test(said);
  return hasFailed ? said : null;
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
