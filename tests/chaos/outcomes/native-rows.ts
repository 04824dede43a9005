/** Faults of tasks, machines, agents, engines and verifiers. */
import { RolloutError, type ErrorCode, type Phase } from '../../../src/core/errors.ts';
import { without, type FolderFiles } from '../../fakes/task-folder.ts';
import { answerTask, image } from '../../trial/trial-bench.ts';
import type { OutcomeRow, WireSide } from './outcome-row.ts';

export const succeeded: WireSide = { status: 'success', category: null };
const invalid: WireSide = { status: 'failure', category: 'validation_error' };
export const failed: WireSide = { status: 'failure', category: 'agent_error' };

export const toml = (lines: string): FolderFiles => ({
  ...answerTask,
  'task.toml': `[environment]\ndocker_image = "${image}"\n${lines}\n`,
});
export const testsSay = (script: string): FolderFiles => ({
  ...answerTask,
  'tests/test.sh': `#!/bin/bash\n${script}\n`,
});
const reward = (text: string): FolderFiles =>
  testsSay(`echo '${text}' > /logs/verifier/reward.txt`);
const planted = (code: ErrorCode, phase: Phase = 'environment') =>
  new RolloutError(code, 'planted', { phase });

type Part = Pick<OutcomeRow, 'name' | 'message'> & Partial<OutcomeRow>;

/** Found wrong before anything is started: both callbacks say the same, without a sample. */
const refused = (stage: string, cause: ErrorCode, retryable: boolean, part: Part): OutcomeRow => ({
  ...{
    server: 'native',
    completion: invalid,
    grader: { ...invalid, reward: null, hasSample: false },
  },
  api: { stage, cause, trainable: false, retryable, verdict: null },
  ...part,
});

/** Failed while it ran: both callbacks say the same. */
export const broken = (
  stage: string,
  cause: ErrorCode,
  retryable: boolean,
  part: Part,
): OutcomeRow => ({
  ...{ server: 'native', completion: failed, grader: { ...failed, reward: null, hasSample: true } },
  api: { stage, cause, trainable: false, retryable, verdict: null },
  ...part,
});

/** The agent did its part, the verifier did not: a success, then a failure. */
export const ungraded = (
  stage: string,
  cause: ErrorCode,
  retryable: boolean,
  part: Part,
): OutcomeRow => ({
  ...broken(stage, cause, retryable, part),
  completion: succeeded,
});

/** The agent failed, and its work was verified all the same: the verdict is kept, and no number is told. */
export const judged = (
  cause: ErrorCode,
  value: number,
  retryable: boolean,
  part: Part,
): OutcomeRow => {
  const row = broken('agent', cause, retryable, part);
  return { ...row, api: { ...row.api, trainable: true, verdict: { reward: value } } };
};

export const fine = (value: number, part: Part): OutcomeRow => ({
  ...{ server: 'native', completion: succeeded },
  grader: { ...succeeded, reward: value, hasSample: true },
  api: {
    ...{ stage: 'done', cause: null, trainable: true, retryable: false },
    verdict: { reward: value },
  },
  ...part,
});

const steps = (second: string): FolderFiles => ({
  'task.toml': `[environment]\ndocker_image = "${image}"\n[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n`,
  'environment/.gitkeep': '',
  'steps/one/instruction.md': 'idle\n',
  'steps/two/instruction.md': 'idle\n',
  'steps/one/tests/test.sh': '#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n',
  'steps/two/tests/test.sh': `#!/bin/bash\n${second}\n`,
});

const cases: readonly OutcomeRow[] = [
  fine(1, { name: 'no-fault', message: null }),
  fine(0, { name: 'no-fault-unsolved', agentDoes: 'idle', message: null }),
  fine(1, { name: 'no-fault-model', agentDoes: 'call-model', engine: 'well', message: null }),

  refused('resolve', 'REFERENCE_INVALID', false, {
    name: 'task-unnamed',
    request: { metadata: {} },
    message: 'metadata names no task under harbor_task',
  }),
  refused('resolve', 'REFERENCE_INVALID', false, {
    name: 'task-odd-name',
    request: { metadata: { harbor_task: 'no-slash' } },
    message: /no task reference/,
  }),
  refused('resolve', 'TASK_NOT_FOUND', false, {
    name: 'task-missing',
    request: { metadata: { harbor_task: '/no/such/task' } },
    message: /no\/such\/task/,
  }),
  refused('resolve', 'REGISTRY_NOT_CONFIGURED', false, {
    name: 'task-package',
    request: { metadata: { harbor_task: 'org/name@1' } },
    message: /registry/,
  }),
  refused('resolve', 'TASK_CONFIG_INVALID', false, {
    name: 'task-wrong',
    files: toml('cpus = "many"'),
    message: /./,
  }),
  refused('resolve', 'TASK_FILE_MISSING', false, {
    name: 'task-without-instruction',
    files: without(answerTask, 'instruction.md'),
    message: /instruction/,
  }),
  refused('resolve', 'TASK_TESTS_MISSING', false, {
    name: 'task-without-tests',
    files: without(answerTask, 'tests/test.sh'),
    message: /test/,
  }),
  refused('config', 'REFERENCE_INVALID', false, {
    name: 'model-odd',
    request: { metadata: { harbor_model: '' } },
    message: /harbor_model/,
  }),
  refused('config', 'MODEL_UNSPECIFIED', false, {
    name: 'model-unnamed',
    request: { chat_completions_url: '' },
    message: /needs a model/,
  }),
  broken('environment', 'CAPABILITY_UNSUPPORTED', false, {
    name: 'machine-without-gpus',
    files: toml('gpus = 1'),
    message: /gpu/i,
  }),

  broken('environment', 'IMAGE_NOT_FOUND', false, {
    name: 'image-missing',
    files: { ...answerTask, 'task.toml': '[environment]\ndocker_image = "no/such:image"\n' },
    message: /no\/such:image/,
  }),
  broken('environment', 'IMAGE_BUILD_FAILED', false, {
    name: 'image-broken',
    files: {
      ...without(answerTask, 'task.toml', 'environment/.gitkeep'),
      'task.toml': '',
      'environment/Dockerfile': `FROM ${image}\nRUN exit 3\n`,
    },
    message: /./,
  }),
  broken('environment', 'ENVIRONMENT_START_FAILED', true, {
    name: 'start-fails',
    fault: { at: 'start', does: planted('ENVIRONMENT_START_FAILED') },
    message: 'planted',
  }),
  broken('environment', 'DISK_FULL', true, {
    name: 'start-disk-full',
    fault: { at: 'start', does: planted('DISK_FULL') },
    message: 'planted',
  }),
  broken('environment', 'ENVIRONMENT_START_TIMEOUT', true, {
    name: 'start-hangs',
    files: toml('build_timeout_sec = 0.3'),
    fault: { at: 'after-create', does: 'hang' },
    message: /0\.3 s/,
  }),
  broken('environment', 'HEALTHCHECK_FAILED', true, {
    name: 'health-fails',
    files: toml('[environment.healthcheck]\ncommand = "exit 1"\ninterval_sec = 0.01\nretries = 1'),
    message: /health/,
  }),
  broken('agent-setup', 'AGENT_SETUP_FAILED', true, {
    name: 'setup-fails',
    request: { metadata: { harbor_model: 'openai/setup-breaks' } },
    message: 'no package',
  }),
  broken('agent', 'AGENT_FAILED', true, {
    name: 'agent-breaks',
    agentDoes: 'break',
    message: /a library of the agent broke/,
  }),
  broken('environment', 'ENVIRONMENT_LOST', true, {
    name: 'sandbox-lost',
    agentDoes: 'work-long',
    fault: { at: 'exec', does: 'lose-sandbox', in: 'the long command' },
    message: /./,
  }),
  broken('agent-stop', 'AGENT_NOT_STOPPED', true, {
    name: 'agent-unstoppable',
    fault: { at: 'kill', does: planted('AGENT_NOT_STOPPED', 'agent-stop') },
    message: 'planted',
  }),

  judged('AGENT_TIMEOUT', 0, false, {
    name: 'agent-late',
    agentDoes: 'sleep',
    request: { agent_timeout_sec: 0.3 },
    message: 'the agent ran longer than 0.3 s',
  }),
  judged('AGENT_TIMEOUT', 1, false, {
    name: 'agent-late-after-solving',
    agentDoes: 'solve-then-sleep',
    request: { agent_timeout_sec: 1.5 },
    message: 'the agent ran longer than 1.5 s',
  }),
  judged('AGENT_EXIT_NONZERO', 0, true, {
    name: 'agent-exits-at-once',
    agentDoes: 'exit',
    message: 'the agent exited with 3',
  }),
  judged('AGENT_EXIT_NONZERO', 1, true, {
    name: 'agent-exits-after-solving',
    agentDoes: 'solve-then-exit',
    message: 'the agent exited with 3',
  }),
  {
    ...broken('agent', 'AGENT_TIMEOUT', false, {
      name: 'agent-without-time',
      request: { agent_timeout_sec: 0 },
      message: /over before it began/,
    }),
    grader: { ...failed, reward: null, hasSample: false },
  },

  broken('model-call', 'ENGINE_UNAVAILABLE', true, {
    name: 'engine-500',
    agentDoes: 'call-model',
    engine: 'status-500',
    message: /500/,
  }),
  broken('model-call', 'ENGINE_OVERLOADED', true, {
    name: 'engine-429',
    agentDoes: 'call-model',
    engine: 'status-429',
    message: /429|slow down/,
  }),
  broken('model-call', 'ENGINE_UNAUTHORIZED', false, {
    name: 'engine-401',
    agentDoes: 'call-model',
    engine: 'status-401',
    message: /401|key/,
  }),
  broken('model-call', 'CONTEXT_OVERFLOW', false, {
    name: 'engine-overflow',
    agentDoes: 'call-model',
    engine: 'overflow',
    message: /context/,
  }),
  broken('model-call', 'ENGINE_STALLED', true, {
    name: 'engine-silent',
    agentDoes: 'call-model',
    engine: 'nothing',
    message: /./,
  }),
  broken('model-call', 'ENGINE_RESPONSE_INVALID', true, {
    name: 'engine-garbage',
    agentDoes: 'call-model',
    engine: 'garbage',
    message: /./,
  }),

  ungraded('verifier', 'REWARD_MISSING', false, {
    name: 'verifier-crashes',
    files: testsSay('exit 1'),
    message: /./,
  }),
  ungraded('verifier', 'VERIFIER_TIMEOUT', false, {
    name: 'verifier-hangs',
    files: testsSay('echo 1 > /logs/verifier/reward.txt; sleep 60'),
    request: { grader_timeout_sec: 0.3 },
    message: /0\.3 s/,
  }),
  ungraded('verifier', 'REWARD_EMPTY', false, {
    name: 'reward-empty',
    files: testsSay(': > /logs/verifier/reward.txt'),
    message: /./,
  }),
  ungraded('verifier', 'REWARD_NOT_FINITE', false, {
    name: 'reward-nan',
    files: reward('nan'),
    message: /./,
  }),
  ungraded('verifier', 'REWARD_NOT_FINITE', false, {
    name: 'reward-infinite',
    files: reward('-inf'),
    message: /./,
  }),
  ungraded('verifier', 'REWARD_INVALID', false, {
    name: 'reward-text',
    files: reward('very good'),
    message: /./,
  }),
  ungraded('verifier', 'REWARD_MISSING', false, {
    name: 'reward-planted',
    agentDoes: 'plant',
    files: testsSay('true'),
    message: /./,
  }),
  ungraded('verifier', 'REWARD_MISSING', false, {
    name: 'reward-linked',
    files: testsSay('echo 1 > /tmp/one; ln -s /tmp/one /logs/verifier/reward.txt'),
    message: /./,
  }),
  ungraded('verifier', 'TESTS_UPLOAD_FAILED', true, {
    name: 'tests-not-brought',
    fault: { at: 'upload', does: planted('TRANSFER_FAILED'), in: '/tests' },
    message: /./,
  }),
  ungraded('verifier', 'VERIFIER_OUTPUT_UNAVAILABLE', true, {
    name: 'verdict-not-read',
    fault: { at: 'download', does: planted('TRANSFER_FAILED'), in: '/logs/verifier' },
    message: /./,
  }),
  ungraded('environment', 'ENVIRONMENT_LOST', true, {
    name: 'sandbox-lost-in-tests',
    files: testsSay('echo 1 > /logs/verifier/reward.txt'),
    fault: { at: 'exec', does: 'lose-sandbox', in: 'test.sh' },
    message: /./,
  }),
  {
    ...ungraded('verifier', 'REWARD_MISSING', false, {
      name: 'reward-in-no-channel',
      files: testsSay('echo \'{"a": 1, "b": 0}\' > /logs/verifier/reward.json'),
      message: /no channel reward/,
    }),
    grader: { ...invalid, reward: null, hasSample: true },
    api: {
      stage: 'verifier',
      cause: 'REWARD_MISSING',
      trainable: false,
      retryable: false,
      verdict: { a: 1, b: 0 },
    },
  },
  {
    ...broken('verifier', 'REWARD_MISSING', false, {
      name: 'step-fails',
      files: steps('true'),
      message: /./,
    }),
    api: {
      stage: 'verifier',
      cause: 'REWARD_MISSING',
      trainable: false,
      retryable: false,
      verdict: { reward: 1 },
    },
  },
  fine(1, {
    name: 'steps-well',
    files: steps('echo 1 > /logs/verifier/reward.txt'),
    message: null,
  }),
  {
    ...ungraded('cleanup', 'ENVIRONMENT_DESTROY_FAILED', true, {
      name: 'sandbox-stays',
      fault: { at: 'destroy', does: planted('ENVIRONMENT_DESTROY_FAILED', 'cleanup') },
      message: 'planted',
    }),
    api: {
      stage: 'cleanup',
      cause: 'ENVIRONMENT_DESTROY_FAILED',
      trainable: false,
      retryable: true,
      verdict: { reward: 1 },
    },
  },
  { ...fine(1, { name: 'callbacks-deaf', message: null }), isDeaf: true },
];

export const nativeRows: readonly OutcomeRow[] = cases;
