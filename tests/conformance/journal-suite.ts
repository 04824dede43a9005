/** The conformance suite of the sandbox journal: what every adapter promises within one process. Deaths of processes are the file adapter's own tests. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type {
  DeadRun,
  SandboxIntent,
  SandboxJournalStore,
} from '../../src/store/sandbox-journal.ts';

export interface JournalAdapter {
  readonly name: string;
  open(): Promise<{ readonly store: SandboxJournalStore } & AsyncDisposable>;
}

const intent = (name: string): SandboxIntent => ({
  name,
  provider: 'fake',
  trial: 'trial',
  intendedAt: '2026-01-01T00:00:00.000Z',
});

const states = (run: DeadRun | undefined) => run?.open.map(({ name, state }) => [name, state]);

/** A run that ended with `names` open, of which the first was created. */
async function leftRun(
  store: SandboxJournalStore,
  runId: string,
  names: readonly string[],
): Promise<void> {
  const journal = await store.open(runId);
  for (const name of names) await journal.intend(intent(name));
  await journal.created(names[0]!);
  await journal.close();
}

const cases: readonly [string, (store: SandboxJournalStore) => Promise<void>][] = [
  [
    'a run that ends with nothing open is not dead, and its name is free again',
    async (store) => {
      const journal = await store.open('run-1');
      await journal.intend(intent('a'));
      await journal.created('a');
      await journal.gone('a');
      await Promise.all([journal.close(), journal.close()]);
      assert.deepEqual(await store.deadRuns(), []);
      assert.deepEqual(await store.liveRuns(), []);
      await (await store.open('run-1')).close();
    },
  ],
  [
    'a run is live until it closes, and then dead with what it intended and created but did not remove',
    async (store) => {
      const journal = await store.open('run-1');
      assert.equal(journal.owner.runId, 'run-1');
      await journal.intend(intent('a'));
      await journal.intend(intent('b'));
      await journal.created('b');
      await journal.intend(intent('c'));
      await journal.gone('c');
      await journal.gone('never intended');
      await journal.created('never intended');
      assert.deepEqual(await store.liveRuns(), ['run-1']);
      assert.deepEqual(await store.deadRuns(), []);
      await journal.close();
      const [run, ...others] = await store.deadRuns();
      assert.deepEqual(others, []);
      assert.equal(run!.damage, null);
      assert.equal(run!.owner.runId, 'run-1');
      assert.deepEqual(run!.open, [
        { ...intent('a'), state: 'intended' },
        { ...intent('b'), state: 'created' },
      ]);
      run!.release();
    },
  ],
  [
    'an open run cannot be opened again',
    async (store) => {
      const journal = await store.open('run-1');
      await assert.rejects(store.open('run-1'), { code: 'JOURNAL_FAILED' });
      await journal.close();
    },
  ],
  [
    'a dead run is given to one cleaner, until it is released; what was removed is remembered',
    async (store) => {
      await leftRun(store, 'run-2', ['x']);
      await leftRun(store, 'run-1', ['a', 'b']);
      const [run, second] = await store.deadRuns();
      assert.deepEqual(
        [run, second].map((one) => one?.owner.runId),
        ['run-1', 'run-2'],
      );
      assert.deepEqual(await store.deadRuns(), []);
      await run!.gone('a');
      await assert.rejects(run!.forget(), { code: 'JOURNAL_FAILED' });
      run!.release();
      const [again] = await store.deadRuns();
      assert.deepEqual(states(again), [['b', 'intended']]);
      await again!.gone('b');
      await again!.forget();
      await second!.gone('x');
      await second!.forget();
      assert.deepEqual(await store.deadRuns(), []);
    },
  ],
  [
    'removals of a dead run that are confirmed at the same time are all recorded',
    async (store) => {
      const names = Array.from({ length: 24 }, (_, index) => `sandbox-${'x'.repeat(index)}`);
      await leftRun(store, 'run-1', [...names, 'kept']);
      const [run] = await store.deadRuns();
      await Promise.all(names.map((name) => run!.gone(name)));
      run!.release();
      const [again] = await store.deadRuns();
      assert.equal(again!.damage, null);
      assert.deepEqual(states(again), [['kept', 'intended']]);
      again!.release();
    },
  ],
];

export function journalSuite(adapter: JournalAdapter): void {
  describe(`sandbox journal conformance: ${adapter.name}`, () => {
    for (const [title, run] of cases)
      test(title, async () => {
        await using open = await adapter.open();
        assert.match(open.store.storeId, /^[a-z0-9]{12}$/);
        await run(open.store);
      });
  });
}
