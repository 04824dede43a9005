/**
 * The conformance suite of the backend port: what a scheduler relies on, whatever executes its rollouts. An adapter says with which metadata a rollout
 * succeeds, fails, or runs until it is stopped.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type {
  Execution,
  ExecutionBackend,
  ExecutionHooks,
  ExecutionRequest,
  ExecutionResult,
} from '../../src/backends/execution-backend.ts';
import { errorRegistry } from '../../src/core/error-registry.ts';
import type { RolloutProgress } from '../../src/wire/rollout/progress.ts';
import { until } from '../support/until.ts';

export type RolloutKind = 'succeeds' | 'fails' | 'runs';

export interface OpenBackend extends AsyncDisposable {
  /** Started. */
  readonly backend: ExecutionBackend;
  metadata(kind: RolloutKind): Readonly<Record<string, unknown>>;
}

export interface BackendAdapter {
  readonly name: string;
  /** Where it is not the name. */
  readonly kind?: string;
  /** Waiting is charged to the agent's time, as the backend's protocol says. */
  readonly chargesQueueTime: boolean;
  /** A rollout that succeeds brings files. */
  readonly leavesFiles: boolean;
  /** Titles of the cases that are run; absent = all. */
  readonly only?: readonly string[] | undefined;
  open(): Promise<OpenBackend>;
}

const secret = 'route-key-of-the-suite';
let count = 0;

function requestOf(open: OpenBackend, kind: RolloutKind, over: Partial<ExecutionRequest> = {}) {
  count += 1;
  return {
    id: `suite-${count}`,
    prompt: [{ role: 'user', content: 'work' }],
    label: 'a label',
    metadata: open.metadata(kind),
    agentTimeoutMs: null,
    graderTimeoutMs: null,
    queuedMs: 0,
    route: { baseUrl: 'http://127.0.0.1:9/v1', apiKey: secret },
    wantsGrade: true,
    secrets: [secret],
    ...over,
  } satisfies ExecutionRequest;
}

class SuiteHooks implements ExecutionHooks {
  readonly told: string[] = [];
  readonly progresses: RolloutProgress[] = [];
  readonly completed: ExecutionResult[] = [];
  refuses = false;

  agentBegins(): Promise<void> {
    this.told.push('begins');
    return this.refuses ? Promise.reject(new Error('it must not go on')) : Promise.resolve();
  }

  progress(progress: RolloutProgress): void {
    this.progresses.push(progress);
  }

  workflowCompleted(result: ExecutionResult): Promise<void> {
    this.told.push('completed');
    this.completed.push(result);
    return Promise.resolve();
  }
}

/** Whatever it is worth: after an abort nobody looks. */
async function settled(execution: Execution): Promise<void> {
  await execution.result.catch(() => undefined);
}

export function backendSuite(adapter: BackendAdapter): void {
  const using = (
    title: string,
    body: (open: OpenBackend, hooks: SuiteHooks) => Promise<void>,
  ): void => {
    if (adapter.only?.includes(title) === false) return;
    it(title, async () => {
      await using open = await adapter.open();
      await body(open, new SuiteHooks());
    });
  };

  describe(`backend conformance: ${adapter.name}`, { concurrency: 1 }, () => {
    using('has a name, and a health that says ok', (open) => {
      assert.equal(open.backend.kind, adapter.kind ?? adapter.name);
      assert.equal(open.backend.health()['status'], 'ok');
      JSON.stringify(open.backend.health());
      return Promise.resolve();
    });

    using('grades: begins, then completes, then has a finite reward', async (open, hooks) => {
      const execution = open.backend.execute(requestOf(open, 'succeeds'), hooks);
      const result = await execution.result;
      assert.deepEqual(hooks.told, ['begins', 'completed']);
      assert.equal(result.status, 'success');
      assert.ok(Number.isFinite(result.sample?.reward));
      assert.equal(result.sample?.label, 'a label');
      assert.deepEqual([result.outcome.stage, result.outcome.cause], ['done', null]);
      assert.equal(hooks.completed[0]?.status, 'success');
      assert.equal(hooks.completed[0].sample?.reward ?? null, null, 'there is no grade yet');
      for (const { stage, lastProgressAt } of hooks.progresses)
        assert.ok(stage !== '' && !Number.isNaN(lastProgressAt.getTime()));
      await execution.release();
      await execution.release();
    });

    using('fails as a value, with a code and without a reward', async (open, hooks) => {
      const { result } = open.backend.execute(requestOf(open, 'fails'), hooks);
      const { status, sample, outcome, errMessage } = await result;
      assert.equal(status, 'failure');
      assert.equal(sample?.reward ?? null, null);
      assert.ok(outcome.cause !== null && outcome.cause in errorRegistry);
      assert.equal(outcome.verdict, null);
      assert.notEqual(errMessage, null);
    });

    using('runs several at once, each with its own end', async (open) => {
      const kinds = ['succeeds', 'fails', 'succeeds'] as const;
      const results = await Promise.all(
        kinds.map((kind) => open.backend.execute(requestOf(open, kind), new SuiteHooks()).result),
      );
      assert.deepEqual(
        results.map(({ status }) => status),
        ['success', 'failure', 'success'],
      );
    });

    using('does not go on when it must not begin', async (open, hooks) => {
      hooks.refuses = true;
      const execution = open.backend.execute(requestOf(open, 'succeeds'), hooks);
      const status = await execution.result.then(
        (result) => result.status,
        () => 'rejected',
      );
      assert.notEqual(status, 'success');
      assert.deepEqual(hooks.told, ['begins']);
    });

    using('does not begin when its time is over from the start', async (open, hooks) => {
      const request = requestOf(open, 'succeeds', { agentTimeoutMs: 0 });
      const { status, outcome } = await open.backend.execute(request, hooks).result;
      assert.equal(status, 'failure');
      assert.match(String(outcome.cause), /_TIMEOUT$/);
      assert.deepEqual(hooks.told, []);
    });

    using('ends an agent whose time is over', async (open, hooks) => {
      const request = requestOf(open, 'runs', { agentTimeoutMs: 300 });
      const { status, outcome, sample } = await open.backend.execute(request, hooks).result;
      assert.equal(status, 'failure');
      assert.match(String(outcome.cause), /_TIMEOUT$/);
      assert.equal(sample?.reward ?? null, null);
    });

    const charge = adapter.chargesQueueTime ? 'charges' : 'does not charge';
    using(`${charge} the wait to the agent's time`, async (open, hooks) => {
      const over = { agentTimeoutMs: 60_000, queuedMs: 60_001 };
      const { status } = await open.backend.execute(requestOf(open, 'succeeds', over), hooks)
        .result;
      assert.equal(status, adapter.chargesQueueTime ? 'failure' : 'success');
    });

    using('is aborted before it has done anything, and twice', async (open, hooks) => {
      const execution = open.backend.execute(requestOf(open, 'runs'), hooks);
      const [one, two] = await Promise.all([
        execution.abort(new Error('first')),
        execution.abort(new Error('second')),
      ]);
      assert.deepEqual(two, one);
      await settled(execution);
      assert.equal(hooks.told.includes('completed'), false);
    });

    using(
      'is aborted while its agent runs, and what it says is gone is gone',
      async (open, hooks) => {
        const execution = open.backend.execute(requestOf(open, 'runs'), hooks);
        await until('the agent has begun', () => hooks.told.includes('begins'));
        const receipt = await execution.abort(new Error('enough'));
        assert.equal(receipt.isComplete, true, receipt.problem ?? '');
        assert.notEqual(receipt.stage, '');
        await settled(execution);
        assert.deepEqual(await execution.abort(new Error('again')), receipt);
        assert.deepEqual(hooks.told, ['begins']);
        await execution.release();
      },
    );

    using('is over when it has been released after an abort', async (open, hooks) => {
      const execution = open.backend.execute(requestOf(open, 'runs'), hooks);
      await until('the agent has begun', () => hooks.told.includes('begins'));
      await execution.abort(new Error('enough'));
      await execution.release();
      const isOver = settled(execution).then(() => true);
      assert.equal(await Promise.race([isOver, nextTurn(false)]), true);
    });

    using('may be aborted after its end, which changes nothing', async (open, hooks) => {
      const execution = open.backend.execute(requestOf(open, 'succeeds'), hooks);
      const { status } = await execution.result;
      await execution.abort(new Error('too late'));
      assert.equal((await execution.result).status, status);
    });

    for (const isComplete of [true, false])
      using(
        isComplete
          ? 'frees the disk of what the archive has taken'
          : 'keeps what the archive could not take, until the rollout is forgotten',
        async (open, hooks) => {
          const request = requestOf(open, 'succeeds');
          const execution = open.backend.execute(request, hooks);
          const { files } = await execution.result;
          assert.equal(files.length > 0, adapter.leavesFiles);
          const found = (): Set<boolean> => new Set(files.map((file) => existsSync(file.path)));
          await execution.release({ isComplete });
          if (adapter.leavesFiles) assert.deepEqual(found(), new Set([!isComplete]));
          await open.backend.forget?.([request.id]);
          assert.equal(found().has(true), false);
        },
      );

    using('lets no secret into what it tells', async (open, hooks) => {
      for (const kind of ['succeeds', 'fails'] as const) {
        const result = await open.backend.execute(requestOf(open, kind), hooks).result;
        const told = JSON.stringify([result, hooks.progresses, hooks.completed]);
        assert.equal(told.includes(secret), false);
      }
    });

    using('ends what is left when it is closed, twice as well', async (open, hooks) => {
      const execution = open.backend.execute(requestOf(open, 'runs'), hooks);
      await until('the agent has begun', () => hooks.told.includes('begins'));
      await Promise.all([open.backend.close(), open.backend.close()]);
      await settled(execution);
    });
  });
}
