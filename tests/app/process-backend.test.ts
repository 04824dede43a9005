/** A backend behind a real process: everything that crosses, and the end of the process. What it executes is the null backend's. */
import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { BackendTask, FromBackend, ToBackend } from '../../src/app/serve/backend-messages.ts';
import { ProcessBackend } from '../../src/app/serve/process-backend.ts';
import type {
  ExecutionHooks,
  ExecutionRequest,
  ExecutionResult,
} from '../../src/backends/execution-backend.ts';
import { systemClock, type Clock } from '../../src/core/clock.ts';
import { compileServeConfig } from '../../src/config/serve/read-serve-config.ts';
import { readMachine } from '../../src/config/machine.ts';
import { isRolloutError, RolloutError } from '../../src/core/errors.ts';
import { never } from '../../src/core/linked-abort.ts';
import type { RolloutProgress } from '../../src/wire/rollout/progress.ts';
import { ManualClock } from '../fakes/manual-clock.ts';
import { until } from '../support/until.ts';
import { whyNoPrecedence } from './autogroups.ts';
import { pingsOfPatience } from './patience.ts';

interface Opened extends AsyncDisposable {
  readonly backend: ProcessBackend;
  readonly losses: RolloutError[];
  readonly lines: string[];
}

const nullDocument = { backend: { kind: 'null' } };

function taskIn(
  root: string,
  document: Readonly<Record<string, unknown>> = nullDocument,
): BackendTask {
  const variables = { HOME: root, SLIPWAY_STATE_DIR: root };
  const config = compileServeConfig(
    { flags: {}, document: { ...document, data_dir: root }, file: null },
    readMachine(variables, root),
  );
  return { config, composition: { variables, cwd: root } };
}

async function open(
  document: Readonly<Record<string, unknown>> = nullDocument,
  { entry, clock = systemClock }: { readonly entry?: URL; readonly clock?: Clock } = {},
): Promise<Opened> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-process-'));
  const losses: RolloutError[] = [];
  const lines: string[] = [];
  const backend = await ProcessBackend.open(taskIn(root, document), {
    clock,
    logger: {
      log: (level, message, fields) =>
        void lines.push(`${level} ${message} ${JSON.stringify(fields)}`),
    },
    onLost: (reason) => void losses.push(reason),
    ...(entry !== undefined && { entry }),
  });
  await backend.start(never);
  return {
    ...{ backend, losses, lines },
    [Symbol.asyncDispose]: async () => {
      await backend.close();
      await rm(root, { recursive: true, force: true });
    },
  };
}

function request(id: string, does: object, label: string | null = null): ExecutionRequest {
  return {
    ...{ id, prompt: [{ role: 'user', content: 'work' }], label, metadata: { null: does } },
    ...{ agentTimeoutMs: null, graderTimeoutMs: null, queuedMs: 0, route: null },
    ...{ wantsGrade: true, secrets: [] },
  };
}

class Hooks implements ExecutionHooks {
  readonly told: string[] = [];
  readonly progresses: RolloutProgress[] = [];
  /** Everything, stages by name. */
  readonly order: string[] = [];
  readonly completed: ExecutionResult[] = [];
  refusal: Error | null = null;

  agentBegins(): Promise<void> {
    this.told.push('begins');
    this.order.push('begins');
    return this.refusal === null ? Promise.resolve() : Promise.reject(this.refusal);
  }

  progress(progress: RolloutProgress): void {
    this.progresses.push(progress);
    this.order.push(progress.stage);
  }

  workflowCompleted(result: ExecutionResult): Promise<void> {
    this.told.push('completed');
    this.order.push('completed');
    this.completed.push(result);
    return Promise.resolve();
  }
}

const mortal = new URL('./mortal-process.ts', import.meta.url);
const sharing = new URL('./sharing-process.ts', import.meta.url);
const patient = new URL('./patient-process.ts', import.meta.url);

describe('a backend in a process of its own', { timeout: 120_000 }, () => {
  it('is refused as it would be here, with code, field and remedy', async () => {
    await assert.rejects(open({ backend: { kind: 'nil' } }), (error) => {
      assert.ok(isRolloutError(error, 'BACKEND_UNKNOWN'));
      assert.equal(error.field, 'backend.kind');
      assert.match(error.remedy ?? '', /null, local/);
      return true;
    });
  });

  it('brings hooks, results and dates over, and says what an abort ended', async () => {
    await using opened = await open();
    const { backend } = opened;
    assert.deepEqual([backend.kind, backend.health()['status']], ['null', 'ok']);
    const hooks = new Hooks();
    const execution = backend.execute(request('r-1', { reward: 0.5 }), hooks);
    const { status, sample } = await execution.result;
    assert.deepEqual([status, sample?.reward], ['success', 0.5]);
    assert.deepEqual(hooks.told, ['begins', 'completed']);
    assert.deepEqual(hooks.order, ['begins', 'running agent', 'completed', 'grading']);
    assert.equal(hooks.completed[0]?.status, 'success');
    assert.ok(hooks.progresses.every(({ lastProgressAt }) => lastProgressAt instanceof Date));
    await execution.release({ isComplete: true });
    await execution.release();

    const failed = await backend.execute(request('r-2', { fail: 'DISK_FULL' }), new Hooks()).result;
    assert.deepEqual([failed.status, failed.outcome.cause], ['failure', 'DISK_FULL']);

    const runs = new Hooks();
    const long = backend.execute(request('r-3', { duration_ms: 3_600_000 }), runs);
    await until('it runs', () => runs.told.includes('begins'));
    const reason = new RolloutError('CANCELLED', 'enough', { phase: 'agent' });
    const receipt = await long.abort(reason);
    assert.equal(receipt.isComplete, true);
    assert.deepEqual(await long.abort(new Error('again')), receipt);
    await long.release();
    assert.deepEqual(opened.losses, []);
  });

  it(
    'has a share of the processor of its own, and precedence while an abort is waited for',
    { skip: whyNoPrecedence() },
    async () => {
      await using opened = await open(undefined, { entry: sharing });
      const { backend } = opened;
      const share = async (process: unknown): Promise<string> =>
        await readFile(`/proc/${String(process)}/autogroup`, 'utf8');
      const pid = backend.health()['pid'];
      const before = await share(pid);
      assert.match(before, / nice 0$/m);
      assert.notEqual(before.split(' ')[0], (await share('self')).split(' ')[0]);
      const executions = ['r-1', 'r-2'].map((id) => backend.execute(request(id, {}), new Hooks()));
      for (const receipt of await Promise.all(
        executions.map((one) => one.abort(new Error('enough'))),
      ))
        assert.match(receipt.stage, / nice -10$/m);
      assert.equal(await share(pid), before);
    },
  );

  it('does not go on where a hook refuses, and keeps why', async () => {
    await using opened = await open();
    const hooks = new Hooks();
    hooks.refusal = new RolloutError('DISK_FULL', 'no space', { phase: 'server' });
    const { result } = opened.backend.execute(request('r-1', {}), hooks);
    const end = await result.then(
      ({ outcome }) => outcome.cause,
      (error: unknown) => (isRolloutError(error) ? error.code : String(error)),
    );
    assert.equal(end, 'DISK_FULL');
    assert.deepEqual(hooks.told, ['begins']);
  });

  for (const label of ['die', 'exit'])
    it(`ends what is live typed when its process ends by itself (${label}), and says so once, and why only to the operator`, async () => {
      await using opened = await open(undefined, { entry: mortal });
      const { backend, losses } = opened;
      const hooks = new Hooks();
      const live = backend.execute(request('r-1', { duration_ms: 3_600_000 }), hooks);
      await until('it runs', () => hooks.told.includes('begins'));
      const last = backend.execute(request('r-2', {}, label), new Hooks());
      for (const { result } of [live, last])
        await assert.rejects(result, (error) => {
          assert.ok(isRolloutError(error, 'BACKEND_LOST'));
          assert.equal(error.retryable, true);
          assert.equal(error.message, 'the process of the backend is gone');
          return true;
        });
      const receipt = await live.abort(new Error('too late'));
      assert.equal(receipt.isComplete, false);
      assert.equal(receipt.problem, 'the process of the backend is gone');
      assert.equal(losses.length, 1);
      if (label === 'die') assert.match(losses[0]?.message ?? '', /planted/);
      // What comes later has not begun: the next life of the server runs it.
      const later = backend.execute(request('r-3', {}), new Hooks());
      const first = await Promise.race([later.result, Promise.resolve('nothing')]);
      assert.equal(first, 'nothing');
      await later.abort(new Error('the server stops'));
      await assert.rejects(backend.start(never), { code: 'BACKEND_LOST' });
      await backend.close();
    });

  it('goes on when nobody reads what its process prints any more', async () => {
    const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-process-'));
    const child = fork(mortal, [], {
      ...{ serialization: 'advanced', stdio: ['ignore', 'pipe', 'pipe', 'ipc'] },
    });
    try {
      child.stderr?.destroy();
      const heard: FromBackend[] = [];
      child.on('message', (message: FromBackend) =>
        heard.push(...(message.kind === 'several' ? message.messages : [message])),
      );
      const say = (message: ToBackend): void => void child.send(message);
      say({ kind: 'make', task: taskIn(root) });
      await until('it is made', () => heard.some(({ kind }) => kind === 'made'));
      for (const key of [1, 2]) {
        say({ kind: 'execute', key, request: request(`r-${key}`, {}, 'print') });
        await until('it has ended or asked', () =>
          heard.some((each) => each.kind === 'crashed' || ('key' in each && each.key === key)),
        );
      }
      assert.deepEqual(
        heard.filter(({ kind }) => kind === 'crashed'),
        [],
      );
    } finally {
      child.kill('SIGKILL');
      await rm(root, { recursive: true, force: true });
    }
  });

  it('does not wait for a process that is stuck: it is killed, and what it had is told', async () => {
    const clock = new ManualClock();
    await using opened = await open(undefined, { entry: mortal, clock });
    const { backend, lines, losses } = opened;
    const execution = backend.execute(request('r-stuck', {}, 'spin'), new Hooks());
    const closing = backend.close();
    await until('it is asked', () => clock.pauses.includes(15_000));
    assert.equal(lines.length, 0);
    clock.advance(15_000);
    await closing;
    const [line, ...others] = lines;
    assert.match(
      line ?? '',
      /^error the process of the backend is stuck.*r-stuck.*slipway cleanup/,
    );
    assert.deepEqual([others, losses], [[], []]);
    await assert.rejects(execution.result, { code: 'BACKEND_LOST' });
    assert.deepEqual(clock.pauses, []);
  });

  it('waits for a process that works, however long it takes to end', async () => {
    const clock = new ManualClock();
    await using opened = await open(undefined, { entry: patient, clock });
    const closing = opened.backend.close();
    for (let ping = 1; ping < pingsOfPatience; ping += 1) {
      await until('it has answered', () => clock.pauses.includes(5_000));
      clock.advance(5_000);
    }
    await closing;
    assert.deepEqual(opened.lines, []);
  });
});
