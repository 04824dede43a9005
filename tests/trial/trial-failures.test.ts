import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RolloutError, type ErrorCode } from '../../src/core/errors.ts';
import { errorRegistry } from '../../src/core/error-registry.ts';
import type { Fault } from '../fakes/environment/faults.ts';
import { FakeMachine } from '../fakes/environment/fake-machine.ts';
import { FakeProvider } from '../fakes/environment/fake-provider.ts';
import type { FolderFiles } from '../fakes/task-folder.ts';
import { answerTask, image, runTrial, type BenchOptions } from './trial-bench.ts';

const failed = (code: ErrorCode) => new RolloutError(code, 'planted', { phase: 'environment' });
const testsSay = (script: string): FolderFiles => ({
  ...answerTask,
  'tests/test.sh': `#!/bin/bash\n${script}\n`,
});
const environment = (lines: string): FolderFiles => ({
  ...answerTask,
  'task.toml': `[environment]\ndocker_image = "${image}"\n${lines}\n`,
});

const noModel = new RolloutError('ENGINE_UNAVAILABLE', 'nobody is there', { phase: 'model-call' });

const trajectory = JSON.stringify({
  agent: { name: 'a', version: '1' },
  steps: [{ step_id: 1, source: 'user', message: '' }],
});
const loads = { resume: false, loadTrajectory: true, windows: false };

interface Row {
  readonly title: string;
  readonly code: ErrorCode;
  readonly fault?: Fault;
  readonly files?: FolderFiles;
  readonly config?: Readonly<Record<string, unknown>>;
  readonly options?: Partial<BenchOptions>;
  readonly capabilities?: ConstructorParameters<typeof FakeMachine>[0];
}

const rows: readonly Row[] = [
  { title: 'an unknown agent', code: 'AGENT_UNKNOWN', config: { agent: { name: 'clever' } } },
  {
    title: 'an agent class without a module',
    code: 'AGENT_UNKNOWN',
    config: { agent: { import_path: 'Class' } },
  },
  {
    title: 'a simulated user',
    code: 'CAPABILITY_UNSUPPORTED',
    config: { user_agent: { name: 'x' } },
  },
  {
    title: 'a verifier class',
    code: 'CAPABILITY_UNSUPPORTED',
    config: { verifier: { import_path: 'pkg:Class' } },
  },
  {
    title: 'verifier options without a class',
    code: 'CONFIG_INVALID',
    config: { verifier: { kwargs: { a: 1 } } },
  },
  {
    title: 'host mounts',
    code: 'CAPABILITY_UNSUPPORTED',
    config: { environment: { mounts: [{ type: 'bind' }] } },
  },
  { title: 'a negative multiplier', code: 'CONFIG_INVALID', config: { timeout_multiplier: -1 } },
  {
    title: 'a variable of the agent that is not set',
    code: 'VARIABLE_UNSET',
    config: { agent: { env: { A: '${NOT_SET}' } } },
  },
  {
    title: 'a compose file that is not there',
    code: 'CONFIG_INVALID',
    config: { environment: { extra_docker_compose: ['/no/such.yaml'] } },
  },
  {
    title: 'a trajectory for an agent that takes none',
    code: 'CAPABILITY_UNSUPPORTED',
    config: { agent: { load_trajectory: '/x.json' } },
  },
  {
    title: "a task's trajectory for an agent that takes none",
    code: 'TASK_TRAJECTORY_INVALID',
    files: { ...answerTask, 'trajectory.json': trajectory },
    options: { agent: {} },
  },
  {
    title: "a task's trajectory that is none",
    code: 'TASK_TRAJECTORY_INVALID',
    files: { ...answerTask, 'trajectory.json': '{}' },
    options: { agent: { capabilities: loads } },
  },
  { title: 'GPUs', code: 'CAPABILITY_UNSUPPORTED', files: environment('gpus = 1') },
  {
    title: 'Windows',
    code: 'CAPABILITY_UNSUPPORTED',
    files: { ...environment('os = "windows"'), 'tests/test.bat': '' },
  },
  {
    title: 'reserved memory',
    code: 'CAPABILITY_UNSUPPORTED',
    files: environment('memory_mb = 64'),
    config: { environment: { memory_enforcement_policy: 'request' } },
  },
  {
    title: 'an enforced limit without a value',
    code: 'CONFIG_INVALID',
    config: { environment: { cpu_enforcement_policy: 'limit' } },
  },
  {
    title: 'no network where there is no such mode',
    code: 'CAPABILITY_UNSUPPORTED',
    files: environment('network_mode = "no-network"'),
    capabilities: { capabilities: { noNetwork: false } },
  },
  {
    title: 'a network of its own for one phase where it cannot change',
    code: 'CAPABILITY_UNSUPPORTED',
    files: environment('[agent]\nnetwork_mode = "no-network"'),
    capabilities: { capabilities: { dynamicNetworkPolicy: false } },
  },
  {
    title: 'a user where there is only one',
    code: 'CAPABILITY_UNSUPPORTED',
    files: environment('[agent]\nuser = "somebody"'),
    capabilities: { capabilities: { users: false } },
  },
  {
    title: 'a service without a compose file',
    code: 'SERVICE_UNSUPPORTED',
    config: { artifacts: [{ source: '/x', service: 'db' }] },
  },
  {
    title: 'an image that is nowhere',
    code: 'IMAGE_NOT_FOUND',
    files: { ...answerTask, 'task.toml': '[environment]\ndocker_image = "no/such:1"\n' },
  },
  {
    title: 'neither image nor Dockerfile',
    code: 'TASK_ENVIRONMENT_UNDEFINED',
    files: { ...answerTask, 'task.toml': '' },
  },
  {
    title: 'no test script',
    code: 'TASK_TESTS_MISSING',
    files: Object.fromEntries(
      Object.entries(answerTask).filter(([name]) => name !== 'tests/test.sh'),
    ),
  },
  {
    title: 'no solution for the oracle',
    code: 'TASK_SOLUTION_MISSING',
    files: Object.fromEntries(
      Object.entries(answerTask).filter(([name]) => name !== 'solution/solve.sh'),
    ),
  },
  {
    title: 'a sandbox that does not start',
    code: 'ENVIRONMENT_START_FAILED',
    fault: { at: 'start', does: failed('ENVIRONMENT_START_FAILED') },
  },
  {
    title: 'a sandbox that does not come up in time',
    code: 'ENVIRONMENT_START_TIMEOUT',
    fault: { at: 'start', does: 'hang' },
    files: environment('build_timeout_sec = 0.3'),
  },
  { title: 'a full disk', code: 'DISK_FULL', fault: { at: 'upload', does: failed('DISK_FULL') } },
  {
    title: 'a health check that never passes',
    code: 'HEALTHCHECK_FAILED',
    files: environment(
      '[environment.healthcheck]\ncommand = "false"\nretries = 2\ninterval_sec = 0.05',
    ),
  },
  {
    title: 'a sandbox lost while the agent runs',
    code: 'ENVIRONMENT_LOST',
    fault: { at: 'exec', does: 'lose-sandbox', when: (command) => command.includes('solve.sh') },
  },
  {
    title: 'an agent that cannot be stopped',
    code: 'AGENT_NOT_STOPPED',
    fault: { at: 'kill', does: failed('AGENT_NOT_STOPPED') },
  },
  {
    title: 'an agent whose setup hangs',
    code: 'AGENT_SETUP_TIMEOUT',
    config: { agent: { override_setup_timeout_sec: 0.2 } },
    options: { agent: { setup: () => new Promise(() => undefined) } },
  },
  {
    title: 'an agent whose setup fails',
    code: 'AGENT_SETUP_FAILED',
    options: { agent: { setup: () => Promise.reject(new Error('no compiler')) } },
  },
  {
    title: 'folders that cannot be cleaned',
    code: 'VERIFIER_FAILED',
    fault: {
      at: 'exec',
      does: failed('EXEC_FAILED'),
      when: (command) => command.includes('chown 0:0'),
    },
  },
  {
    title: 'tests that cannot be uploaded',
    code: 'TESTS_UPLOAD_FAILED',
    fault: {
      at: 'upload',
      does: failed('TRANSFER_FAILED'),
      when: (subject) => subject.includes('/tests'),
    },
  },
  {
    title: 'a verifier that hangs',
    code: 'VERIFIER_TIMEOUT',
    files: testsSay('echo 1 > /logs/verifier/reward.txt; sleep 60'),
    config: { agent: { name: 'nop' }, verifier: { override_timeout_sec: 0.5 } },
  },
  {
    title: 'a verifier that crashes',
    code: 'REWARD_MISSING',
    files: testsSay('echo broken; exit 139'),
  },
  { title: 'a verifier that writes nothing', code: 'REWARD_MISSING', files: testsSay('true') },
  {
    title: 'a verifier that writes an empty file',
    code: 'REWARD_EMPTY',
    files: testsSay('touch /logs/verifier/reward.txt'),
  },
  {
    title: 'a verifier that writes NaN',
    code: 'REWARD_NOT_FINITE',
    files: testsSay('echo nan > /logs/verifier/reward.txt'),
  },
  {
    title: 'a verifier that writes words',
    code: 'REWARD_INVALID',
    files: testsSay('echo passed > /logs/verifier/reward.txt'),
  },
  {
    title: 'a reward that is a link',
    code: 'REWARD_MISSING',
    files: testsSay('echo 1 > /tmp/one; ln -s /tmp/one /logs/verifier/reward.txt'),
  },
  {
    title: 'output that cannot be read',
    code: 'VERIFIER_OUTPUT_UNAVAILABLE',
    fault: {
      at: 'download',
      does: failed('TRANSFER_FAILED'),
      when: (subject) => subject.includes('/logs/verifier'),
    },
  },
  {
    title: 'a sandbox that cannot be removed',
    code: 'ENVIRONMENT_DESTROY_FAILED',
    fault: { at: 'destroy', does: failed('ENVIRONMENT_DESTROY_FAILED'), times: 2 },
  },
];

describe('a trial with', () => {
  for (const row of rows)
    test(`${row.title} ends as ${row.code}, with a record and no invented number`, async () => {
      const machine = new FakeMachine(row.capabilities);
      if (row.fault !== undefined) machine.faults.plant(row.fault);
      const provider = new FakeProvider(machine);
      const options: BenchOptions = {
        provider,
        ...(row.files !== undefined && { files: row.files }),
        ...(row.config !== undefined && { config: row.config }),
        ...row.options,
      };
      await runTrial(options, ({ file }, result) => {
        const { slipway, exception_info: exception } = result;
        assert.equal(slipway?.failure?.code, row.code, slipway?.failure?.message);
        assert.equal(slipway.outcome.cause, row.code);
        assert.equal(exception?.exception_type, errorRegistry[row.code].harborType);
        assert.doesNotMatch(file('exception.txt'), /\n {4}at /);
        assert.match(file('exception.txt'), new RegExp(`^${row.code}`));
        if (row.code !== 'ENVIRONMENT_DESTROY_FAILED') {
          assert.equal(result.verifier_result, null);
          assert.equal(slipway.outcome.verdict, null);
        }
        assert.equal(slipway.outcome.trainable, false);
        assert.ok(result.finished_at);
      });
      if (row.code !== 'ENVIRONMENT_DESTROY_FAILED')
        assert.deepEqual([...machine.sandboxes.keys()], []);
    });

  test('a crash of the verifier says how it ended and what it printed', async () => {
    const result = await runTrial({
      provider: new FakeProvider(),
      files: testsSay('echo broken; exit 139'),
    });
    assert.match(result.slipway?.failure?.detail ?? '', /exited with 139[^]*broken/);
    assert.equal(result.slipway?.verifier_exit_code, 139);
  });

  test('a verifier that fails after its verdict keeps the verdict', async () => {
    const result = await runTrial({
      provider: new FakeProvider(),
      files: testsSay('echo 0.5 > /logs/verifier/reward.txt; exit 3'),
    });
    assert.deepEqual(result.verifier_result, { rewards: { reward: 0.5 } });
    assert.equal(result.slipway?.verifier_exit_code, 3);
    assert.equal(result.exception_info, null);
  });

  test('a link for a reward says that it was not followed', async () => {
    const result = await runTrial({
      provider: new FakeProvider(),
      files: testsSay('ln -s /etc/hostname /logs/verifier/reward.txt'),
    });
    assert.match(result.slipway?.failure?.detail ?? '', /reward\.txt is a link/);
  });
});

test('an agent that cannot reach its model costs no sandbox', async () => {
  const machine = new FakeMachine();
  const stages: string[] = [];
  const result = await runTrial(
    {
      provider: new FakeProvider(machine),
      agent: { preflight: () => Promise.reject(noModel) },
    },
    ({ events }) => {
      for (const event of events) if (event.type === 'stage:started') stages.push(event.stage);
    },
  );
  assert.equal(result.slipway?.failure?.code, 'ENGINE_UNAVAILABLE');
  assert.deepEqual(stages, ['checking agent']);
  assert.equal(result.verifier_result, null);
});

test('an installation alone asks for no model', async () => {
  const result = await runTrial({
    provider: new FakeProvider(new FakeMachine()),
    agent: { preflight: () => Promise.reject(noModel) },
    config: { install_only: true },
  });
  assert.equal(result.exception_info, null);
});

for (const [title, options] of [
  ['the oracle does not look at it', { files: { ...answerTask, 'trajectory.json': '{}' } }],
  [
    'an agent that loads trajectories may run',
    {
      files: { ...answerTask, 'trajectory.json': trajectory },
      agent: { capabilities: loads },
    },
  ],
] as const)
  test(`a trajectory that a task brings: ${title}`, async () => {
    const result = await runTrial({ provider: new FakeProvider(new FakeMachine()), ...options });
    assert.notEqual(result.slipway?.failure?.code, 'TASK_TRAJECTORY_INVALID');
    assert.notEqual(result.verifier_result, null);
  });
