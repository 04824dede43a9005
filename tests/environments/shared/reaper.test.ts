import assert from 'node:assert/strict';
import { mkdtempDisposable, readdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../../src/core/clock.ts';
import { RolloutError } from '../../../src/core/errors.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { silentLogger } from '../../../src/core/logger.ts';
import { reapDeadRuns, type ReapOptions } from '../../../src/environments/shared/reaper.ts';
import { FileLocks } from '../../../src/store/file/file-lock.ts';
import { FileSandboxJournalStore } from '../../../src/store/file/file-sandbox-journal.ts';
import { environmentSpec } from '../../fakes/environment/environment-spec.ts';
import { FakeMachine } from '../../fakes/environment/fake-machine.ts';
import { FakeProvider } from '../../fakes/environment/fake-provider.ts';
import { JumpingClock } from '../../fakes/jumping-clock.ts';

const locks = new FileLocks(systemClock);

/** A state folder and a machine; the clock jumps, so that looking again takes no time. */
async function world() {
  const folder = await mkdtempDisposable(join(tmpdir(), 'slipway-reaper-'));
  const journals = await FileSandboxJournalStore.open(folder.path, locks);
  const machine = new FakeMachine();
  const clock = new JumpingClock();
  const provider = new FakeProvider(machine);
  const options: ReapOptions = {
    journals,
    providers: new Map([['fake', provider]]),
    clock,
    logger: silentLogger,
    signal: never,
    deadlineMs: 10_000,
  };
  return {
    journals,
    machine,
    clock,
    provider,
    options,
    reap: (overrides: Partial<ReapOptions> = {}) => reapDeadRuns({ ...options, ...overrides }),
    journalFiles: async () => await readdir(join(folder.path, 'runs')),
    makeSandbox: async (name: string, runId: string, storeId = journals.storeId) => {
      const labels = { storeId, runId, trial: 't', expiresAt: '2031-01-01T00:00:00.000Z' };
      await provider.environment(environmentSpec(name, { labels })).start({ signal: never });
    },
    /** A run that ended with sandboxes open, as one does whose cleanup failed. */
    endedRun: async (
      runId: string,
      created: readonly string[],
      intended: readonly string[] = [],
    ) => {
      const journal = await journals.open(runId);
      for (const name of [...created, ...intended]) {
        const intendedAt = clock.now().toISOString();
        await journal.intend({ name, provider: 'fake', trial: 't', intendedAt });
      }
      for (const name of created) await journal.created(name);
      await journal.close();
    },
    [Symbol.asyncDispose]: () => folder.remove(),
  };
}

test('sandboxes of a dead run are removed, and the run is forgotten', async () => {
  await using w = await world();
  await w.endedRun('dead', ['a', 'b']);
  await w.makeSandbox('a', 'dead');
  await w.makeSandbox('b', 'dead');
  const report = await w.reap();
  assert.deepEqual(report, { runs: ['dead'], removed: ['a', 'b'], failed: [], expiredForeign: [] });
  assert.equal(w.machine.sandboxes.size, 0);
  assert.deepEqual(await w.journalFiles(), []);
  assert.deepEqual((await w.reap()).runs, []);
});

test('an intended sandbox that appears only after the first look is removed', async () => {
  await using w = await world();
  await w.endedRun('dead', [], ['late']);
  const destroyByName = w.provider.destroyByName.bind(w.provider);
  let looks = 0;
  w.provider.destroyByName = async (name, options) => {
    const receipt = await destroyByName(name, options);
    looks += 1;
    // The daemon finishes the create call of the dead run.
    if (looks === 2) await w.makeSandbox('late', 'dead');
    return receipt;
  };
  const startedAt = w.clock.monotonicMs();
  const report = await w.reap();
  assert.ok(looks > 2);
  assert.ok(w.clock.monotonicMs() - startedAt < 10_000);
  assert.deepEqual([report.removed, report.failed], [['late'], []]);
  assert.equal(w.machine.sandboxes.size, 0);
});

test('an old intent is looked for once', async () => {
  await using w = await world();
  await w.endedRun('dead', [], ['old']);
  await w.clock.sleep(24 * 3_600_000, never);
  const before = w.clock.monotonicMs();
  assert.deepEqual((await w.reap()).removed, ['old']);
  assert.equal(w.clock.monotonicMs(), before);
});

test('a live run and a foreign sandbox of a similar name are not touched', async () => {
  await using w = await world();
  const live = await w.journals.open('live');
  await live.intend({ name: 'box-2', provider: 'fake', trial: 't', intendedAt: 'now' });
  await w.endedRun('dead', ['box']);
  await w.makeSandbox('box', 'dead');
  await w.makeSandbox('box-2', 'live');
  await w.makeSandbox('box-3', 'dead', 'another-store');
  const report = await w.reap();
  assert.deepEqual(report.removed, ['box']);
  assert.deepEqual([...w.machine.sandboxes.keys()].sort(), ['box-2', 'box-3']);
  await live.close();
});

test('a sandbox with our label whose run has no journal any more is removed by label', async () => {
  await using w = await world();
  await w.makeSandbox('orphan', 'forgotten-run');
  const report = await w.reap();
  assert.deepEqual([report.runs, report.removed], [[], ['orphan']]);
});

test('an expired sandbox of another state folder is reported and stays', async () => {
  await using w = await world();
  await w.makeSandbox('stranger', 'run', 'another-store');
  assert.deepEqual((await w.reap()).expiredForeign, []);
  await w.clock.sleep(2 * 366 * 24 * 3_600_000, never);
  const report = await w.reap();
  assert.deepEqual(
    report.expiredForeign.map(({ name }) => name),
    ['stranger'],
  );
  assert.ok(w.machine.sandboxes.has('stranger'));
});

test('one of a provider is removed some time after its expiry: its machine may be gone for good', async () => {
  await using w = await world();
  Object.assign(w.provider, { isRemote: true });
  await w.makeSandbox('stranger', 'run', 'another-store');
  const leftMs = Date.parse('2031-01-01T00:00:00.000Z') - w.clock.now().getTime();
  for (const [passedMs, removed] of [
    [leftMs - 60_000, []],
    [5 * 60_000, []],
    [10 * 60_000, ['stranger']],
  ] as const) {
    await w.clock.sleep(passedMs, never);
    assert.deepEqual((await w.reap()).removed, removed);
  }
  assert.equal(w.machine.sandboxes.size, 0);
});

test('what cannot be removed is reported, keeps its run, and is tried again by the next cleaning', async () => {
  await using w = await world();
  await w.endedRun('dead', ['a', 'stuck']);
  await w.makeSandbox('a', 'dead');
  await w.makeSandbox('stuck', 'dead');
  const error = new RolloutError('ENVIRONMENT_DESTROY_FAILED', 'no', { phase: 'cleanup' });
  w.machine.faults.plant({
    at: 'destroy',
    does: error,
    when: (name) => name === 'stuck',
    times: 1,
  });
  const first = await w.reap();
  assert.deepEqual(first.removed, ['a']);
  assert.deepEqual(first.failed, [{ name: 'stuck', error }]);
  const second = await w.reap();
  assert.deepEqual([second.runs, second.removed], [['dead'], ['stuck']]);
  assert.deepEqual(await w.journalFiles(), []);
});

test('a run whose provider is not available is kept, and others are cleaned', async () => {
  await using w = await world();
  const journal = await w.journals.open('other-kind');
  await journal.intend({ name: 'x', provider: 'docker', trial: 't', intendedAt: 'long ago' });
  await journal.close();
  await w.endedRun('dead', ['a']);
  const report = await w.reap();
  assert.deepEqual(report.removed, ['a']);
  assert.deepEqual(
    report.failed.map(({ name, error }) => [name, error.code]),
    [['x', 'ENVIRONMENT_UNAVAILABLE']],
  );
  assert.equal((await w.journals.deadRuns()).length, 1);
});

test('a provider that cannot list is reported and does not stop the cleaning by journal', async () => {
  await using w = await world();
  await w.endedRun('dead', ['a']);
  await w.makeSandbox('a', 'dead');
  const error = new RolloutError('ENVIRONMENT_UNAVAILABLE', 'no', { phase: 'cleanup' });
  w.machine.faults.plant({ at: 'list', does: error });
  const report = await w.reap();
  assert.deepEqual(report.removed, ['a']);
  assert.deepEqual(report.failed, [{ name: 'sandboxes of fake', error }]);
});

test('a removal that hangs is given up at the deadline and its run is kept', async () => {
  await using w = await world();
  await w.endedRun('dead', ['hangs']);
  await w.makeSandbox('hangs', 'dead');
  w.machine.faults.plant({ at: 'destroy', does: 'hang', times: 1 });
  const { failed } = await w.reap({ deadlineMs: 50 });
  const hanging = failed.find(({ name }) => name === 'hangs');
  assert.equal(hanging?.error.code, 'ENVIRONMENT_DESTROY_FAILED');
  assert.deepEqual((await w.reap()).removed, ['hangs']);
});

test('a cancelled cleaning rejects with the reason and lets go of the runs', async () => {
  await using w = await world();
  await w.endedRun('dead', [], ['a']);
  const controller = new AbortController();
  const reason = new Error('never mind');
  const destroyByName = w.provider.destroyByName.bind(w.provider);
  w.provider.destroyByName = async (name, options) => {
    controller.abort(reason);
    return await destroyByName(name, options);
  };
  await assert.rejects(w.reap({ signal: controller.signal }), reason);
  const [run] = await w.journals.deadRuns();
  assert.equal(run?.owner.runId, 'dead');
  run.release();
});

for (const [where, isRemote, wanted] of [
  ['on this machine', false, 8],
  ['at a provider', true, 64],
] as const)
  test(`sandboxes ${where} are removed ${wanted} at a time`, async () => {
    await using w = await world();
    Object.assign(w.provider, { isRemote });
    const names = Array.from({ length: 100 }, (_, n) => `box-${n}`);
    await w.endedRun('dead', names);
    for (const name of names) await w.makeSandbox(name, 'dead');
    const destroyByName = w.provider.destroyByName.bind(w.provider);
    let [running, peak] = [0, 0];
    w.provider.destroyByName = async (name, options) => {
      running += 1;
      peak = Math.max(peak, running);
      await systemClock.sleep(5, never);
      running -= 1;
      return await destroyByName(name, options);
    };
    assert.equal((await w.reap()).removed.length, 100);
    assert.equal(peak, wanted);
  });

test('two cleanings at once do not work on the same run', async () => {
  await using w = await world();
  await w.endedRun('dead', ['a']);
  await w.makeSandbox('a', 'dead');
  const reports = await Promise.all([w.reap(), w.reap()]);
  assert.deepEqual(reports.flatMap(({ runs }) => runs).sort(), ['dead']);
  assert.equal(w.machine.sandboxes.size, 0);
});
