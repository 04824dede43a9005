/** Broken tasks by name, each with the code and field that its trial has to end with. */
import type { ErrorCode } from '../../src/core/errors.ts';
import { plainTask, without, type FolderFiles } from '../fakes/task-folder.ts';

export interface BadTask {
  readonly files: FolderFiles;
  readonly code: ErrorCode;
  /** What `field` contains; null = the failure has no field of the reader's. */
  readonly field: string | null;
  /** The verifier ran to its end although something else went wrong: its number is real. */
  readonly rewards?: Readonly<Record<string, number>>;
}

const toml = (text: string): FolderFiles => ({ ...plainTask, 'task.toml': text });
const verifier = (script: string, limits = ''): FolderFiles => ({
  ...plainTask,
  'task.toml': limits,
  'tests/test.sh': `#!/bin/bash\n${script}\n`,
});
const reward = (text: string): FolderFiles =>
  verifier(`printf %s ${JSON.stringify(text)} > /logs/verifier/reward.txt`);
const rewardJson = (text: string): FolderFiles =>
  verifier(`cat > /logs/verifier/reward.json <<'END'\n${text}\nEND`);
const dockerfile = (text: string): FolderFiles => ({
  ...plainTask,
  'environment/Dockerfile': text,
});

const base = 'FROM debian:bookworm-slim\n';
const oneStep = (more: FolderFiles, step = ''): FolderFiles => ({
  'task.toml': `[[steps]]\nname = "one"\n${step}`,
  'environment/Dockerfile': base,
  'steps/one/instruction.md': 'Do it.\n',
  'steps/one/tests/test.sh': '#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n',
  'steps/one/solution/solve.sh': '#!/bin/bash\ntrue\n',
  ...more,
});

// A table reads best with one row per line.
// prettier-ignore
export const badTasks: Readonly<Record<string, BadTask>> = {
  'toml-syntax': { files: toml('[environment'), code: 'TASK_CONFIG_UNREADABLE', field: 'task.toml' },
  'number-for-text': { files: toml('schema_version = 1.4'), code: 'TASK_CONFIG_INVALID', field: 'schema_version' },
  'fraction-of-a-cpu': { files: toml('[environment]\ncpus = 0.5'), code: 'TASK_CONFIG_INVALID', field: 'environment.cpus' },
  'variable-is-a-number': { files: toml('[environment.env]\nA = 1'), code: 'TASK_CONFIG_INVALID', field: 'environment.env.A' },
  'upper-case-network': { files: toml('[environment]\nnetwork_mode = "PUBLIC"'), code: 'TASK_CONFIG_INVALID', field: 'environment.network_mode' },
  'hosts-without-allowlist': { files: toml('[environment]\nnetwork_mode = "no-network"\nallowed_hosts = ["a.org"]'), code: 'TASK_CONFIG_INVALID', field: 'environment' },
  'url-as-host': { files: toml('[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["https://a.org/x"]'), code: 'TASK_CONFIG_INVALID', field: 'allowed_hosts' },
  'timeout-is-a-word': { files: toml('[verifier]\ntimeout_sec = "soon"'), code: 'TASK_CONFIG_INVALID', field: 'verifier.timeout_sec' },
  'timeout-is-nan': { files: toml('[agent]\ntimeout_sec = nan'), code: 'TASK_CONFIG_INVALID', field: 'agent.timeout_sec' },
  'artifact-leaves-its-folder': { files: toml('artifacts = [{source = "/a", destination = "../b"}]'), code: 'TASK_CONFIG_INVALID', field: 'artifacts' },
  'mcp-without-url': { files: toml('[[environment.mcp_servers]]\nname = "m"\ntransport = "sse"'), code: 'TASK_CONFIG_INVALID', field: 'mcp_servers' },
  'step-leaves-its-folder': { files: toml('[[steps]]\nname = "../x"'), code: 'TASK_CONFIG_INVALID', field: 'steps[0].name' },
  'no-instruction': { files: without(plainTask, 'instruction.md'), code: 'TASK_FILE_MISSING', field: 'instruction.md' },
  'no-tests': { files: without(plainTask, 'tests/test.sh'), code: 'TASK_TESTS_MISSING', field: 'tests' },
  'step-without-instruction': { files: without(oneStep({}), 'steps/one/instruction.md'), code: 'TASK_FILE_MISSING', field: 'steps/one/instruction.md' },
  'no-environment': { files: { ...without(plainTask, 'environment/Dockerfile'), 'environment/notes.txt': 'x' }, code: 'TASK_ENVIRONMENT_UNDEFINED', field: 'environment' },
  'no-solution': { files: without(plainTask, 'solution/solve.sh'), code: 'TASK_SOLUTION_MISSING', field: 'solution' },
  'unset-variable': { files: toml('[environment.env]\nA = "${SLIPWAY_TEST_SURELY_UNSET}"'), code: 'VARIABLE_UNSET', field: 'environment.env.A' },
  'unset-verifier-variable': { files: toml('[verifier.env]\nA = "${SLIPWAY_TEST_SURELY_UNSET}"'), code: 'VARIABLE_UNSET', field: 'verifier.env.A' },
  'build-fails': { files: dockerfile(`${base}RUN echo broken-here >&2; exit 3\n`), code: 'IMAGE_BUILD_FAILED', field: 'Dockerfile' },
  'dockerfile-syntax': { files: dockerfile(`${base}FETCH everything\n`), code: 'IMAGE_BUILD_FAILED', field: 'Dockerfile' },
  'image-absent': { files: toml('[environment]\ndocker_image = "127.0.0.1:9/absent:1"'), code: 'IMAGE_NOT_FOUND', field: null },
  'needs-a-gpu': { files: toml('[environment]\ngpus = 1'), code: 'CAPABILITY_UNSUPPORTED', field: 'environment.gpus' },
  'needs-windows': { files: { ...toml('[environment]\nos = "windows"'), 'tests/test.bat': 'rem\n', 'solution/solve.bat': 'rem\n' }, code: 'CAPABILITY_UNSUPPORTED', field: 'environment.os' },
  'user-unknown': { files: toml('[agent]\nuser = "nobody-of-this-name"'), code: 'EXEC_FAILED', field: 'user' },
  'never-healthy': { files: toml('[environment.healthcheck]\ncommand = "false"\ninterval_sec = 0.1\ntimeout_sec = 1.0\nstart_period_sec = 0.0\nretries = 2'), code: 'HEALTHCHECK_FAILED', field: 'healthcheck' },
  'step-setup-fails': { files: oneStep({ 'steps/one/workdir/setup.sh': 'exit 7\n' }), code: 'STEP_SETUP_FAILED', field: 'setup.sh' },
  'verifier-crashes': { files: verifier('kill -SEGV $$'), code: 'REWARD_MISSING', field: null },
  'verifier-writes-nothing': { files: verifier('true'), code: 'REWARD_MISSING', field: null },
  'verifier-hangs': { files: verifier('sleep 600', '[verifier]\ntimeout_sec = 2.0'), code: 'VERIFIER_TIMEOUT', field: 'verifier.timeout_sec' },
  'reward-empty': { files: reward(''), code: 'REWARD_EMPTY', field: null },
  'reward-nan': { files: reward('nan'), code: 'REWARD_NOT_FINITE', field: null },
  'reward-inf': { files: reward('-inf'), code: 'REWARD_NOT_FINITE', field: null },
  'reward-overflows': { files: reward('1e999'), code: 'REWARD_NOT_FINITE', field: null },
  'reward-text': { files: reward('very good'), code: 'REWARD_INVALID', field: null },
  'reward-two-numbers': { files: reward('1 2'), code: 'REWARD_INVALID', field: null },
  'reward-list': { files: rewardJson('[1, 0]'), code: 'REWARD_INVALID', field: null },
  'reward-json-broken': { files: rewardJson('{"reward": 1'), code: 'REWARD_INVALID', field: null },
  'one-of-several-channels-is-text': { files: rewardJson('{"a": 1, "b": "good"}'), code: 'REWARD_INVALID', field: null },
  'one-of-several-channels-is-infinite': { files: rewardJson('{"a": 1, "b": 1e999}'), code: 'REWARD_NOT_FINITE', field: null },
  'reward-is-a-link': { files: verifier('echo 1 > /tmp/r; ln -s /tmp/r /logs/verifier/reward.txt'), code: 'REWARD_MISSING', field: null },
  'agent-too-slow': { files: { ...toml('[agent]\ntimeout_sec = 2.0'), 'solution/solve.sh': '#!/bin/bash\nsleep 600\n' }, code: 'AGENT_TIMEOUT', field: 'agent.timeout_sec', rewards: { reward: 1 } },
};
