import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { AgentResolver } from '../../../src/agents/agent.ts';
import type { ExecutionRequest } from '../../../src/backends/execution-backend.ts';
import { readHarborTask } from '../../../src/backends/native/harbor-task.ts';
import { RolloutError } from '../../../src/core/errors.ts';
import { FakeMachine } from '../../fakes/environment/fake-machine.ts';
import { FakeProvider } from '../../fakes/environment/fake-provider.ts';
import type { Fault } from '../../fakes/environment/faults.ts';
import type { FolderFiles } from '../../fakes/task-folder.ts';
import { until } from '../../support/until.ts';
import { answerTask, type AgentBehaviour } from '../../trial/trial-bench.ts';
import { HeardHooks, nativeBench, requestFor, type NativeBenchOptions } from './native-bench.ts';

const scripted =
  (run: NonNullable<AgentBehaviour['run']>): AgentResolver =>
  () =>
    Promise.resolve((options) => ({
      name: 'scripted',
      version: '1',
      capabilities: { resume: false, loadTrajectory: false, windows: false },
      hostFiles: ['trajectory.json'],
      hostOnlyVariables: [],
      setup: () => Promise.resolve(),
      run: (agentRun, signal) => run(agentRun, signal, options),
    }));

const testsSay = (script: string): FolderFiles => ({
  ...answerTask,
  'tests/test.sh': `#!/bin/bash\n${script}\n`,
});

async function run(options: NativeBenchOptions = {}, over: Partial<ExecutionRequest> = {}) {
  await using bench = await nativeBench(options);
  const hooks = new HeardHooks();
  const execution = bench.backend.execute(requestFor(bench.taskDir, over), hooks);
  const result = await execution.result;
  const dir = path.join(bench.dataDir, 'trials', 'native-tenant%3A%3Ar-1');
  const keeps = result.files.map(({ name }) => name);
  const config = existsSync(dir) ? readFileSync(path.join(dir, 'config.json'), 'utf8') : '';
  await execution.release();
  return { result, hooks, keeps, config, isKept: existsSync(dir), bench };
}

describe('a rollout of the native backend', () => {
  it('is one trial: the agent begins, the completion is known, then the verdict is the reward', async () => {
    const { result, hooks, keeps, isKept } = await run();
    assert.equal(result.status, 'success');
    assert.equal(result.sample?.reward, 1);
    assert.equal(result.sample.label, 'a label');
    assert.deepEqual(result.outcome, {
      stage: 'done',
      cause: null,
      trainable: true,
      retryable: false,
      verdict: { rewards: { reward: 1 } },
    });
    const told = hooks.heard.filter((text) => /begins|completed|verifier$|agent$/.test(text));
    assert.deepEqual(told, [
      'setting up agent',
      'running agent',
      'agent begins',
      'stopping agent',
      'completed',
      'running verifier',
    ]);
    assert.deepEqual(
      hooks.completed.map(({ status, sample }) => [status, sample?.reward]),
      [['success', null]],
    );
    assert.ok(keeps.includes('logs/verifier'));
    assert.equal(isKept, false, 'the folder of a successful trial is gone');
  });

  it('says its diagnostics as the protocol names them', async () => {
    const { result } = await run();
    const { timings_sec, outcome, ...rest } = result.diagnostics as Record<string, unknown>;
    assert.deepEqual(rest, {
      backend: 'native_harbor',
      phase: 'verification',
      harbor_exception_type: null,
      category: null,
    });
    assert.deepEqual(outcome, result.outcome);
    assert.deepEqual(Object.keys(timings_sec as object), [
      'setup',
      'trial_setup',
      'environment_setup',
      'agent_setup',
      'agent',
      'verification',
      'trial',
    ]);
  });

  it('tells what each stage waits for', async () => {
    const { hooks } = await run();
    const waits = new Map(
      hooks.progresses.map(({ stage, waitingOn }) => [stage, [waitingOn?.kind, waitingOn?.owner]]),
    );
    assert.deepEqual(waits.get('finding task'), ['task', 'task']);
    assert.deepEqual(waits.get('starting environment'), ['image-build', 'environment fake']);
    assert.deepEqual(waits.get('running agent'), ['agent', 'agent oracle']);
    assert.deepEqual(waits.get('running verifier'), ['verifier', 'verifier']);
    assert.deepEqual(waits.get('cleaning up'), ['sandbox-destroy', 'environment fake']);
    const first = hooks.progresses.find(({ stage }) => stage === 'starting environment');
    assert.equal(first?.waitingOn?.kind, 'sandbox-create', 'until the image tells a line');
    const verifier = hooks.progresses.find(({ stage }) => stage === 'running verifier');
    assert.notEqual(verifier?.waitingOn?.deadline, null);
  });
});

describe('the agent of the native backend', () => {
  const failing = (): NativeBenchOptions & { seen: unknown[] } => {
    const seen: unknown[] = [];
    return {
      seen,
      options: { agent: 'terminus-2', agent_options: { llm_kwargs: { timeout: 5 } } },
      resolveAgent: scripted((_run, _signal, { kwargs, modelName }) => {
        seen.push({ kwargs, modelName });
        throw new RolloutError('AGENT_FAILED', 'refused route-key-1234', { phase: 'agent' });
      }),
    };
  };

  it('has the warnings about its task in the log', async () => {
    const logged: string[] = [];
    const warning = 'the tag latest moves while a run goes on';
    await using bench = await nativeBench({
      taskWarnings: [warning],
      logger: { log: (level, message) => logged.push(`${level}: ${message}`) },
    });
    await bench.backend.execute(requestFor(bench.taskDir), new HeardHooks()).result;
    assert.ok(logged.includes(`warn: ${warning}`));
  });

  it('gets the route and the defaults of a training run over its own options', async () => {
    const options = failing();
    const { result, config, isKept } = await run(options);
    assert.deepEqual(options.seen, [
      {
        modelName: 'openai/osmosis-rollout',
        kwargs: {
          enable_summarize: false,
          proactive_summarization_threshold: 0,
          api_base: 'http://127.0.0.1:9/v1',
          llm_kwargs: { timeout: 5, api_key: 'route-key-1234', extra_body: { stream: false } },
        },
      },
    ]);
    assert.equal(result.errMessage, 'refused [REDACTED]');
    assert.ok(config.includes('api_base') && !config.includes('route-key-1234'));
    assert.equal(isKept, true, 'the folder of a failed trial stays');
  });

  it('may have a model of its own row, if that can be one', async () => {
    await using bench = await nativeBench(failing());
    for (const [model, cause] of [
      ['openai/other', 'AGENT_FAILED'],
      ['', 'REFERENCE_INVALID'],
      [null, 'REFERENCE_INVALID'],
      [false, 'REFERENCE_INVALID'],
      ['other', 'REFERENCE_INVALID'],
    ] as const) {
      const metadata = { harbor_task: bench.taskDir, harbor_model: model };
      const request = requestFor(bench.taskDir, { metadata });
      const result = await bench.backend.execute(request, new HeardHooks()).result;
      assert.equal(result.outcome.cause, cause, String(model));
    }
  });

  it('that needs a model is refused without an address, before anything is fetched or started', async () => {
    const options = failing();
    const { result, hooks, isKept } = await run(options, { route: null });
    assert.deepEqual(
      [result.status, result.errCategory, result.outcome.cause, result.sample],
      ['failure', 'validation_error', 'MODEL_UNSPECIFIED', null],
    );
    assert.deepEqual([options.seen, hooks.heard, isKept], [[], ['finding task'], false]);
  });

  it('that is the oracle needs none', async () => {
    const { result } = await run({}, { route: null });
    assert.equal(result.sample?.reward, 1);
  });

  it('does not begin when its time is over already', async () => {
    const { result, hooks } = await run({}, { agentTimeoutMs: 0 });
    assert.deepEqual([result.outcome.cause, result.errCategory], ['AGENT_TIMEOUT', 'agent_error']);
    assert.deepEqual(hooks.heard, []);
  });

  it('that runs out of time after a correct solution: the verdict is kept, no number is the reward', async () => {
    const resolveAgent = scripted(async ({ environment }, signal) => {
      await environment.exec({ command: 'mkdir -p /app && echo yes > /app/answer' }, signal);
      await new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      );
    });
    const { result, hooks } = await run({ resolveAgent }, { agentTimeoutMs: 1_500 });
    assert.equal(result.status, 'failure');
    assert.equal(result.errCategory, 'agent_error');
    assert.equal(result.sample?.reward, null);
    assert.deepEqual(result.outcome, {
      stage: 'agent',
      cause: 'AGENT_TIMEOUT',
      trainable: true,
      retryable: false,
      verdict: { rewards: { reward: 1 } },
    });
    assert.deepEqual(
      hooks.completed.map(({ status, errMessage }) => [status, errMessage]),
      [['failure', 'the agent ran longer than 1.5 s']],
    );
    assert.equal(result.errMessage, 'the agent ran longer than 1.5 s');
  });

  it('leaves a trajectory, which is the rollout’s', async () => {
    const document = {
      schema_version: 'ATIF-v1.7',
      session_id: 's',
      agent: { name: 'scripted', version: '1' },
      steps: [{ step_id: 1, source: 'user', message: 'hello' }],
    };
    const resolveAgent = scripted(async (_run, _signal, { logsDir }) => {
      await writeFile(path.join(logsDir, 'trajectory.json'), JSON.stringify(document));
    });
    const { result } = await run({ resolveAgent });
    assert.deepEqual((result.trajectory as typeof document | null)?.steps, document.steps);
  });

  it('whose trajectory is none leaves its folder', async () => {
    const resolveAgent = scripted(async ({ environment }, signal, { logsDir }) => {
      await writeFile(path.join(logsDir, 'trajectory.json'), '{"steps": 1}');
      await environment.exec({ command: 'mkdir -p /app && echo yes > /app/answer' }, signal);
    });
    const { result, isKept } = await run({ resolveAgent });
    assert.deepEqual([result.status, result.trajectory, isKept], ['success', null, true]);
  });
});

describe('the ending of a native rollout', () => {
  const planted = (at: Fault['at']): NativeBenchOptions => {
    const machine = new FakeMachine();
    const does = new RolloutError('ENVIRONMENT_START_FAILED', 'planted', { phase: 'environment' });
    machine.faults.plant({ at, does });
    return { provider: new FakeProvider(machine) };
  };
  interface Row {
    readonly title: string;
    readonly options: NativeBenchOptions;
    readonly over?: Partial<ExecutionRequest>;
    readonly cause: string;
    readonly category: string;
    readonly phase: string;
    readonly completions: readonly string[];
  }
  const rows: readonly Row[] = [
    {
      title: 'no task named',
      options: {},
      over: { metadata: null },
      cause: 'REFERENCE_INVALID',
      category: 'validation_error',
      phase: 'setup',
      completions: [],
    },
    {
      title: 'a missing task',
      options: {},
      over: { metadata: { harbor_task: '/no/such/task' } },
      cause: 'TASK_NOT_FOUND',
      category: 'validation_error',
      phase: 'setup',
      completions: [],
    },
    {
      title: 'a task that is wrong',
      options: { files: { ...answerTask, 'task.toml': '[agent]\ntimeout_sec = "x"\n' } },
      cause: 'TASK_CONFIG_INVALID',
      category: 'validation_error',
      phase: 'setup',
      completions: [],
    },
    {
      title: 'a sandbox that does not start',
      options: planted('start'),
      cause: 'ENVIRONMENT_START_FAILED',
      category: 'agent_error',
      phase: 'environment_setup',
      completions: [],
    },
    {
      title: 'a verifier that writes nothing',
      options: { files: testsSay('true') },
      cause: 'REWARD_MISSING',
      category: 'agent_error',
      phase: 'verification',
      completions: ['success'],
    },
    {
      title: 'a reward that is NaN',
      options: { files: testsSay('echo nan > /logs/verifier/reward.txt') },
      cause: 'REWARD_NOT_FINITE',
      category: 'agent_error',
      phase: 'verification',
      completions: ['success'],
    },
    {
      title: 'a verifier that hangs',
      options: { files: testsSay('sleep 60') },
      over: { graderTimeoutMs: 200 },
      cause: 'VERIFIER_TIMEOUT',
      category: 'agent_error',
      phase: 'verification',
      completions: ['success'],
    },
    {
      title: 'several channels without the one',
      options: { files: testsSay('echo \'{"a": 1, "b": 0}\' > /logs/verifier/reward.json') },
      cause: 'REWARD_MISSING',
      category: 'validation_error',
      phase: 'grading',
      completions: ['success'],
    },
  ];
  for (const { title, options, over, cause, category, phase, completions } of rows)
    it(`with ${title} is typed, and no number is its reward`, async () => {
      const { result, hooks } = await run(options, over);
      assert.equal(result.status, 'failure');
      assert.equal(result.outcome.cause, cause);
      assert.equal(result.errCategory, category);
      assert.equal(result.diagnostics?.['phase'], phase);
      assert.equal(result.sample?.reward ?? null, null);
      assert.deepEqual(
        hooks.completed.map(({ status }) => status),
        completions,
      );
    });

  const channels: readonly (readonly [string, Readonly<Record<string, unknown>>, number])[] = [
    ['the named channel', { reward: 0.5, other: 1 }, 0.5],
    ['the only channel', { score: 0.25 }, 0.25],
  ];
  for (const [title, rewards, expected] of channels)
    it(`takes ${title} as the reward`, async () => {
      const files = testsSay(`echo '${JSON.stringify(rewards)}' > /logs/verifier/reward.json`);
      const { result } = await run({ files });
      assert.equal(result.sample?.reward, expected);
    });

  it('whose folder cannot be written is a failure, as a value', async () => {
    await using bench = await nativeBench();
    await writeFile(path.join(bench.dataDir, 'trials'), '');
    const hooks = new HeardHooks();
    const { status, outcome } = await bench.backend.execute(requestFor(bench.taskDir), hooks)
      .result;
    assert.deepEqual([status, outcome.cause, outcome.trainable], ['failure', 'INTERNAL', false]);
  });

  it('whose agent is not set up in time is typed', async () => {
    const resolveAgent: AgentResolver = () =>
      Promise.resolve(() => ({
        ...{ name: 'scripted', version: '1', hostFiles: [], hostOnlyVariables: [] },
        capabilities: { resume: false, loadTrajectory: false, windows: false },
        setup: async (environment, signal) => {
          await environment.exec({ command: 'sleep 60' }, signal);
        },
        run: () => Promise.resolve(),
      }));
    const { result } = await run({ resolveAgent, options: { agent_setup_timeout_sec: 0.2 } });
    assert.equal(result.outcome.cause, 'AGENT_SETUP_TIMEOUT');
    assert.equal(result.errMessage, 'the agent was not set up after 0.2 s');
  });

  it('after several steps tells the completion at the end, and a failed step leaves no reward', async () => {
    const step = (script: string) => `#!/bin/bash\n${script}\n`;
    const files: FolderFiles = {
      'task.toml':
        '[environment]\ndocker_image = "debian:bookworm-slim"\n[[steps]]\nname = "one"\n[[steps]]\nname = "two"\n',
      'environment/.gitkeep': '',
      'steps/one/instruction.md': 'one',
      'steps/two/instruction.md': 'two',
      'steps/one/tests/test.sh': step('echo 1 > /logs/verifier/reward.txt'),
      'steps/two/tests/test.sh': step('true'),
      'steps/one/solution/solve.sh': step('true'),
      'steps/two/solution/solve.sh': step('true'),
    };
    const { result, hooks } = await run({ files });
    assert.equal(result.status, 'failure');
    assert.equal(result.sample?.reward, null);
    assert.equal(result.outcome.cause, 'REWARD_MISSING');
    assert.deepEqual(hooks.completed, []);
    assert.equal(hooks.heard.filter((text) => text === 'agent begins').length, 1);
  });
});

describe('an abort of a native rollout', () => {
  it('ends the agent and its sandbox, and leaves nothing of the trial', async () => {
    const machine = new FakeMachine();
    const running = Promise.withResolvers<undefined>();
    const resolveAgent = scripted(async (_run, signal) => {
      running.resolve(undefined);
      await new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      );
    });
    await using bench = await nativeBench({ provider: new FakeProvider(machine), resolveAgent });
    const hooks = new HeardHooks();
    const execution = bench.backend.execute(requestFor(bench.taskDir), hooks);
    await running.promise;
    const cancelled = new RolloutError('CANCELLED', 'by the controller', { phase: 'agent' });
    const receipt = await execution.abort(cancelled);
    await execution.release();
    assert.equal(receipt.stage, 'running agent');
    assert.equal(receipt.isComplete, true);
    assert.notEqual(receipt.confirmedGone.length, 0);
    assert.equal(await execution.abort(new Error('again')), receipt);
    assert.deepEqual(hooks.completed, []);
    assert.equal(machine.sandboxes.size, 0);
    assert.deepEqual(readdirSync(path.join(bench.dataDir, 'trials')), []);
  });

  for (const [when, says] of [
    ['while its trial is read', 'CANCELLED'],
    ['by a server that stops, whose failed trial stays', 'SERVER_STOPPING'],
  ] as const)
    it(`${when}: what stays is what the reason says`, async () => {
      await using bench = await nativeBench();
      const hooks = new HeardHooks();
      const read = Promise.withResolvers<undefined>();
      // The completion is awaited when the trial has ended and its folder is read.
      const completing = Promise.withResolvers<undefined>();
      hooks.workflowCompleted = async () => {
        completing.resolve(undefined);
        await read.promise;
      };
      const execution = bench.backend.execute(requestFor(bench.taskDir), hooks);
      await completing.promise;
      await until('the trial has ended', () => hooks.heard.includes('cleaning up'));
      const aborting = execution.abort(new RolloutError(says, 'enough', { phase: 'verifier' }));
      read.resolve(undefined);
      await aborting;
      await execution.release({ isComplete: false });
      const left = readdirSync(path.join(bench.dataDir, 'trials'));
      assert.equal(left.length, says === 'CANCELLED' ? 0 : 1);
    });

  it('before the trial exists is complete at once', async () => {
    await using bench = await nativeBench();
    const execution = bench.backend.execute(requestFor(bench.taskDir), new HeardHooks());
    const receipt = await execution.abort(new Error('cancelled'));
    assert.deepEqual([receipt.isComplete, receipt.stage], [true, 'finding task']);
  });
});

describe('a reference to a Harbor task', () => {
  const entryOf = (metadata: Readonly<Record<string, unknown>>) => {
    const { entry, warnings } = readHarborTask(metadata);
    const { path: at, git_url, git_commit_id, name, ref } = entry;
    return [at, git_url, git_commit_id, name, ref, warnings.length];
  };
  const rows: readonly (readonly [Readonly<Record<string, unknown>>, readonly unknown[]])[] = [
    [{ harbor_task: './a' }, ['./a', null, null, null, null, 0]],
    [{ harbor_task: '/a', git_url: 'https://h/r' }, ['/a', null, null, null, null, 0]],
    [
      { harbor_task: 'x', git_url: 'https://h/r', task_path: 't', git_commit_id: 'abc' },
      ['t', 'https://h/r', 'abc', null, null, 0],
    ],
    [
      { harbor_task: 'x', git_url: 'https://h/r', git_commit_id: ' ' },
      ['.', 'https://h/r', null, null, null, 1],
    ],
    [{ harbor_task: 'org/name@3' }, [null, null, null, 'org/name', '3', 0]],
    [{ harbor_task: 'org/name@sha256:ab' }, [null, null, null, 'org/name', 'sha256:ab', 0]],
    [{ harbor_task: 'org/name@' }, [null, null, null, 'org/name', 'latest', 1]],
    [{ harbor_task: 'org/name' }, [null, null, null, 'org/name', 'latest', 1]],
  ];
  for (const [metadata, expected] of rows)
    it(`is read from ${JSON.stringify(metadata)}`, () => {
      assert.deepEqual(entryOf(metadata), expected);
    });

  it('from the home folder is expanded', () => {
    assert.match(String(entryOf({ harbor_task: '~/a' })[0]), /^\/.*\/a$/);
  });

  for (const metadata of [{}, { harbor_task: '' }, { harbor_task: 'name' }, { harbor_task: 3 }])
    it(`is refused: ${JSON.stringify(metadata)}`, () => {
      assert.throws(() => readHarborTask(metadata), { code: 'REFERENCE_INVALID' });
    });

  it('warns without an address, which may hold a credential', () => {
    const { warnings } = readHarborTask({ harbor_task: 'x', git_url: 'https://user:pass@h/r' });
    assert.doesNotMatch(warnings.join(' '), /pass|https/);
  });
});
