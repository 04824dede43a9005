import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmod, readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import { backupStoreFolder } from '../../../src/store/sqlite/copy-store.ts';
import { SqliteRolloutStore } from '../../../src/store/sqlite/sqlite-rollout-store.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { at, delivery, ids, rollout } from '../../conformance/store/bench.ts';
import { Child } from '../file/child.ts';
import { openStore, parts, temporary } from './opening.ts';

test('the folder and its files are private to their user, also where they were not', async () => {
  await using parent = await temporary();
  const folder = join(parent.path, 'data');
  for (let round = 0; round < 2; round += 1) {
    await using store = await openStore(folder);
    await store.accept(rollout(`r-${round}`));
    const names = await readdir(folder);
    assert.ok(names.includes('store.sqlite-wal') && names.includes('store.pid'));
    for (const name of names.filter((one) => !one.startsWith('store.lock'))) {
      const { mode } = await stat(join(folder, name));
      assert.equal(mode & 0o777, 0o600, name);
    }
    assert.equal((await stat(folder)).mode & 0o777, 0o700);
    await store.close();
    await chmod(join(folder, 'store.sqlite'), 0o644);
  }
});

test('one process at a time: another is told who holds the folder, and gets it when that one was killed', async () => {
  await using folder = await temporary();
  await using child = new Child('../sqlite/store-writer.ts', [folder.path]);
  assert.equal(await child.line(), 'open');
  await assert.rejects(
    openStore(folder.path),
    (error) =>
      isRolloutError(error, 'STORE_LOCKED') &&
      /process \d+ uses the data folder/.test(error.message),
  );
  await child.kill();
  await using store = await openStore(folder.path);
  assert.deepEqual(await store.rollout('none'), null);
  await assert.rejects(openStore(folder.path), { code: 'STORE_LOCKED' });
});

test('an opening that is given up lets go of the folder', async () => {
  await using folder = await temporary();
  const abort = new AbortController();
  const opening = SqliteRolloutStore.open(folder.path, { ...parts, signal: abort.signal });
  abort.abort(new Error('not now'));
  await assert.rejects(opening, /not now/);
  await using store = await openStore(folder.path);
  assert.deepEqual(await store.accept(rollout('a')), { kind: 'accepted' });
});

test('a backup taken while writers are at work is one moment of the store, and opens as a store', async () => {
  await using parent = await temporary();
  const folder = join(parent.path, 'data');
  const copyFolder = join(parent.path, 'copy');
  await using store = await openStore(folder);
  await using empty = await openStore(copyFolder);
  await empty.close();
  const copies = ['store.sqlite', 'other.sqlite'].map((name) => join(copyFolder, name));
  const stop = new AbortController();
  const writing = (async () => {
    for (let index = 0; !stop.signal.aborted; index += 1) {
      const id = `r-${index}`;
      // In every moment a rollout and its two events are there together or not at all.
      await Promise.all([
        store.accept(rollout(id)),
        store.change({
          id,
          from: ['queued'],
          set: { state: 'running' },
          events: [{ ...rollout(id), rolloutId: id, type: 't', at: at(0), payload: {} }],
        }),
      ]);
    }
  })();
  for (let first = await store.list({ limit: 1 }); first.length === 0;)
    first = await store.list({ limit: 1 });
  await store.backup(copies[0]!, never);
  await backupStoreFolder(folder, copies[1]!, never); // as another process does it
  stop.abort();
  await writing;
  for (const path of copies) {
    assert.equal((await stat(path)).mode & 0o777, 0o600);
    const copy = new DatabaseSync(path, { readOnly: true });
    assert.equal(copy.prepare('PRAGMA integrity_check').get()?.['integrity_check'], 'ok');
    copy.close();
  }
  assert.deepEqual(
    (await readdir(copyFolder)).filter((name) => name.endsWith('.part')),
    [],
  );
  await using copy = await openStore(copyFolder);
  const { live } = await copy.recover();
  const { newest } = await copy.events({ after: 0, limit: 1 });
  assert.ok(live.length > 0);
  const running = live.filter(({ state }) => state === 'running').length;
  assert.equal(newest, live.length + running);
});

test('the store of a stopped server is copied too, and never over itself', async () => {
  await using folder = await temporary();
  const store = await openStore(folder.path);
  await store.accept(rollout('a'));
  const own = ['store.sqlite', 'store.sqlite-wal'].map((name) => join(folder.path, name));
  for (const path of own)
    await assert.rejects(store.backup(path, never), { code: 'CONFIG_INVALID' });
  await store.close();
  await using copyFolder = await temporary();
  await backupStoreFolder(folder.path, join(copyFolder.path, 'store.sqlite'), never);
  for (const path of [folder.path, copyFolder.path]) {
    await using opened = await openStore(path);
    assert.deepEqual(ids((await opened.recover()).live), ['a']);
  }
  await assert.rejects(backupStoreFolder(join(folder.path, 'none'), own[0]!, never), {
    code: 'STORE_FAILED',
  });
});

test('a backup to a place that does not exist fails and leaves nothing; a given-up one too', async () => {
  await using folder = await temporary();
  await using store = await openStore(folder.path);
  await assert.rejects(store.backup(join(folder.path, 'no', 'where'), never), {
    code: 'STORE_FAILED',
  });
  const abort = new AbortController();
  const backup = store.backup(join(folder.path, 'copy'), abort.signal);
  abort.abort(new Error('given up'));
  await assert.rejects(backup, /given up/);
  assert.deepEqual(
    (await readdir(folder.path)).filter((name) => name.startsWith('copy.')),
    [],
  );
  assert.deepEqual(await store.accept(rollout('a')), { kind: 'accepted' });
});

test('long bodies of callbacks that wait stay in the file at a start', async () => {
  await using folder = await temporary();
  await using store = await openStore(folder.path);
  await store.accept(rollout('a'));
  const long = { body: 'x'.repeat(100_000) };
  const deliveries = [delivery('a'), delivery('a', 'grader', long)];
  await store.change({ id: 'a', from: ['queued'], set: {}, deliveries });
  const { pending } = await store.recover();
  assert.deepEqual(
    pending.map(({ body }) => body),
    [deliveries[0]?.body, null],
  );
  assert.equal((await store.deliveries('a'))[1]?.body, long.body);
});

test('a prune gives the space back to the file system', async () => {
  await using folder = await temporary();
  const request = JSON.stringify({ text: 'x'.repeat(50_000) });
  await using store = await openStore(folder.path);
  await Promise.all(
    Array.from({ length: 100 }, async (_, index) => {
      await store.accept(rollout(`r-${index}`, { request }));
      const set = { state: 'failure', endedAt: at(index) } as const;
      await store.change({ id: `r-${index}`, from: ['queued'], set });
    }),
  );
  await store.prune({ maxAgeMs: 1e12, maxEnded: 2 }, at(0));
  assert.deepEqual(ids(await store.list({ limit: 9 })).length, 2);
  await store.close();
  const { size } = await stat(join(folder.path, 'store.sqlite'));
  assert.ok(size < 500_000, `${size} bytes`);
});

test('a key in a request is in the file of the store and in no other', async () => {
  await using folder = await temporary();
  await using store = await openStore(folder.path);
  const request = JSON.stringify({ controller_api_key: 'canary-key-7f3a' });
  await store.accept(rollout('a', { request }));
  const found = execFileSync('grep', ['-rlac', 'canary-key-7f3a', folder.path], {
    encoding: 'utf8',
  });
  assert.deepEqual(
    found
      .trim()
      .split('\n')
      .map((file) => file.replace(/^.*\//, '')),
    ['store.sqlite-wal'],
  );
});
