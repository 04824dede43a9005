import assert from 'node:assert/strict';
import { appendFile, mkdtempDisposable, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../../src/core/clock.ts';
import type { DeadRun, SandboxIntent } from '../../../src/store/sandbox-journal.ts';
import { FileLocks } from '../../../src/store/file/file-lock.ts';
import { FileSandboxJournalStore } from '../../../src/store/file/file-sandbox-journal.ts';
import { Child } from './child.ts';

const locks = new FileLocks(systemClock);
const temporary = () => mkdtempDisposable(join(tmpdir(), 'slipway-journal-'));
const openStore = (stateDir: string) => FileSandboxJournalStore.open(stateDir, locks);

const intent = (name: string): SandboxIntent => ({
  name,
  provider: 'fake',
  trial: 'trial',
  intendedAt: '2026-01-01T00:00:00.000Z',
});

/** A run whose process was killed after the given commands were durable. */
async function killedRun(stateDir: string, runId: string, commands: readonly string[]) {
  await using child = new Child('run-writer.ts', [stateDir, runId]);
  await child.line();
  for (const command of commands) {
    child.say(command);
    assert.equal(await child.line(), 'ok');
  }
}

const states = (run: DeadRun | undefined) => run?.open.map(({ name, state }) => [name, state]);

test('a run that ends with nothing open leaves no file', async () => {
  await using folder = await temporary();
  const store = await openStore(folder.path);
  const journal = await store.open('run-1');
  await journal.intend(intent('a'));
  await journal.created('a');
  await journal.gone('a');
  await Promise.all([journal.close(), journal.close()]);
  assert.deepEqual(await readdir(join(folder.path, 'runs')), []);
  assert.deepEqual(await store.deadRuns(), []);
});

test('a run of a killed process is dead and names what it intended and created but did not remove', async () => {
  await using folder = await temporary();
  const store = await openStore(folder.path);
  await killedRun(folder.path, 'run-1', [
    'intend a',
    'created a',
    'intend b',
    'intend c',
    'created c',
    'gone c',
  ]);
  const [run, ...others] = await store.deadRuns();
  assert.deepEqual(others, []);
  assert.equal(run!.owner.runId, 'run-1');
  assert.equal(run!.damage, null);
  assert.deepEqual(states(run), [
    ['a', 'created'],
    ['b', 'intended'],
  ]);
  run!.release();
});

test('a live run of another process is live and not dead', async () => {
  await using folder = await temporary();
  const store = await openStore(folder.path);
  await using child = new Child('run-writer.ts', [folder.path, 'run-1']);
  assert.equal(await child.line(), store.storeId);
  child.say('intend a');
  await child.line();
  assert.deepEqual(await store.liveRuns(), ['run-1']);
  assert.deepEqual(await store.deadRuns(), []);
  await child.kill();
  assert.deepEqual(await store.liveRuns(), []);
  const [run] = await store.deadRuns();
  assert.deepEqual(states(run), [['a', 'intended']]);
  run!.release();
});

test('a live run stays live when somebody deletes its lock file', async () => {
  await using folder = await temporary();
  const store = await openStore(folder.path);
  await using child = new Child('run-writer.ts', [folder.path, 'run-1']);
  await child.line();
  await rm(join(folder.path, 'runs', 'run-1.lock'));
  assert.deepEqual(await store.deadRuns(), []);
  assert.deepEqual(await store.liveRuns(), ['run-1']);
});

test('a run of this very process is live until it closes, and then dead if something is open', async () => {
  await using folder = await temporary();
  const store = await openStore(folder.path);
  const journal = await store.open('run-1');
  await journal.intend(intent('a'));
  assert.deepEqual(await store.liveRuns(), ['run-1']);
  assert.deepEqual(await store.deadRuns(), []);
  await journal.close();
  const [run] = await store.deadRuns();
  assert.deepEqual(states(run), [['a', 'intended']]);
  run!.release();
});

test('a run of an earlier boot is dead although its pid runs', async () => {
  await using folder = await temporary();
  const store = await openStore(folder.path);
  const journal = await store.open('run-1');
  const file = join(folder.path, 'runs', 'run-1.ndjson');
  const text = (await readFile(file, 'utf8')).replace(journal.owner.bootId, 'earlier-boot');
  await journal.close();
  await writeFile(file, text);
  const [run] = await store.deadRuns();
  assert.equal(run?.owner.bootId, 'earlier-boot');
  assert.equal(run.owner.pid, process.pid);
  await run.forget();
  assert.deepEqual(await readdir(join(folder.path, 'runs')), []);
});

test('a dead run is given to one cleaner only, until it is released', async () => {
  await using folder = await temporary();
  const store = await openStore(folder.path);
  await killedRun(folder.path, 'run-1', ['intend a']);
  const [run] = await store.deadRuns();
  assert.deepEqual(await (await openStore(folder.path)).deadRuns(), []);
  run!.release();
  const [again] = await store.deadRuns();
  assert.deepEqual(states(again), [['a', 'intended']]);
  again!.release();
});

test('what a cleaner removed is remembered, and a run is forgotten only when nothing is open', async () => {
  await using folder = await temporary();
  const store = await openStore(folder.path);
  await killedRun(folder.path, 'run-1', ['intend a', 'intend b']);
  const [run] = await store.deadRuns();
  await run!.gone('a');
  await assert.rejects(run!.forget(), { code: 'JOURNAL_FAILED' });
  run!.release();
  const [again] = await store.deadRuns();
  assert.deepEqual(states(again), [['b', 'intended']]);
  await again!.gone('b');
  await again!.forget();
  assert.deepEqual(await readdir(join(folder.path, 'runs')), []);
});

test('a truncated last record is ignored and does not spoil the next one', async () => {
  await using folder = await temporary();
  const store = await openStore(folder.path);
  await killedRun(folder.path, 'run-1', ['intend a', 'intend b']);
  await appendFile(join(folder.path, 'runs', 'run-1.ndjson'), '{"type":"created","na');
  const [run] = await store.deadRuns();
  assert.equal(run!.damage, null);
  await run!.gone('a');
  run!.release();
  const [again] = await store.deadRuns();
  assert.equal(again!.damage, null);
  assert.deepEqual(states(again), [['b', 'intended']]);
  again!.release();
});

test('a run killed within its first record is removed without a word', async () => {
  await using folder = await temporary();
  const store = await openStore(folder.path);
  for (const [runId, text] of [
    ['empty', ''],
    ['half', '{"type":"run","ver'],
  ] as const)
    await writeFile(join(folder.path, 'runs', `${runId}.ndjson`), text);
  assert.deepEqual(await store.deadRuns(), []);
  assert.deepEqual(await readdir(join(folder.path, 'runs')), []);
});

test('garbage in the middle is JOURNAL_FAILED naming the file, and other runs are read', async () => {
  await using folder = await temporary();
  const store = await openStore(folder.path);
  const file = join(folder.path, 'runs', 'run-1.ndjson');
  await killedRun(folder.path, 'run-1', ['intend a']);
  await appendFile(file, '\u0000\u0001 garbage\n{"type":"intended","name":"b","provider":"fake",');
  await appendFile(file, '"trial":"t","intendedAt":"2026-01-01T00:00:00Z"}\n');
  await killedRun(folder.path, 'run-2', ['intend z']);
  const [damaged, sound] = await store.deadRuns();
  assert.equal(damaged?.damage?.code, 'JOURNAL_FAILED');
  assert.match(damaged.damage.message, /run-1\.ndjson: line 3/);
  assert.deepEqual(states(damaged), [
    ['a', 'intended'],
    ['b', 'intended'],
  ]);
  for (const { name } of damaged.open) await damaged.gone(name);
  await assert.rejects(damaged.forget(), { code: 'JOURNAL_FAILED' });
  damaged.release();
  assert.equal(sound?.damage, null);
  assert.deepEqual(states(sound), [['z', 'intended']]);
  sound.release();
});

test('opening a run that is open is refused', async () => {
  await using folder = await temporary();
  const store = await openStore(folder.path);
  const journal = await store.open('run-1');
  await assert.rejects(store.open('run-1'), { code: 'JOURNAL_FAILED' });
  await journal.close();
});

test('processes that open a new state folder at once agree on its id', async () => {
  await using folder = await temporary();
  const stateDir = join(folder.path, 'state');
  await using children = new AsyncDisposableStack();
  const started = ['a', 'b', 'c', 'd'].map((runId) =>
    children.use(new Child('run-writer.ts', [stateDir, runId])),
  );
  const ids = new Set(await Promise.all(started.map((child) => child.line())));
  assert.equal(ids.size, 1);
  assert.match([...ids].join(), /^[a-z0-9]{12}$/);
  assert.deepEqual((await readdir(stateDir)).sort(), ['runs', 'store-id']);
});

test('ten thousand records are written together and read back', async () => {
  await using folder = await temporary();
  const store = await openStore(folder.path);
  const journal = await store.open('run-1');
  const names = Array.from({ length: 3_400 }, (_, index) => `sandbox-${index}`);
  await Promise.all(
    names.map(async (name, index) => {
      await journal.intend(intent(name));
      await journal.created(name);
      if (index > 2) await journal.gone(name);
    }),
  );
  await journal.close();
  const startedAt = performance.now();
  const [run] = await store.deadRuns();
  const recoveryMs = performance.now() - startedAt;
  assert.deepEqual(states(run), [
    ['sandbox-0', 'created'],
    ['sandbox-1', 'created'],
    ['sandbox-2', 'created'],
  ]);
  assert.ok(recoveryMs < 3_000, `recovery took ${recoveryMs} ms`);
  run!.release();
});

test('records that a full disk refuses are rejected and leave no half line', async () => {
  const { AppendLog } = await import('../../../src/store/file/append-log.ts');
  const written: string[] = [];
  let isFull = true;
  let size = 0;
  const file = {
    truncate: async (length: number) => {
      size = length;
    },
    write: async (bytes: Buffer, offset: number, length: number, at: number) => {
      assert.equal(at, size);
      if (isFull && offset > 0)
        throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
      const bytesWritten = isFull ? 2 : length;
      size += bytesWritten;
      if (!isFull) written.push(bytes.toString());
      return { bytesWritten, buffer: bytes };
    },
    datasync: async () => undefined,
    close: async () => undefined,
  };
  const log = new AppendLog(file as never, 0);
  await assert.rejects(log.append('first\n'), { code: 'ENOSPC' });
  isFull = false;
  await log.append('second\n');
  await log.close();
  assert.deepEqual(written, ['second\n']);
  assert.equal(size, 'second\n'.length);
});
