import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { isRolloutError, type ErrorCode } from '../../../src/core/errors.ts';
import { downgradeStoreFolder } from '../../../src/store/sqlite/copy-store.ts';
import { schemaSteps, type SchemaStep } from '../../../src/store/sqlite/schema.ts';
import { delivery, ids, rollout } from '../../conformance/store/bench.ts';
import { openStore, parts, temporary } from './opening.ts';

const [first] = schemaSteps;
const firstOnly = [first!];
const newest = schemaSteps.length;

/** Steps of a later program: one that adds a column, and one that cannot be undone. */
const later: readonly SchemaStep[] = [
  ...schemaSteps,
  {
    version: newest + 1,
    up: `ALTER TABLE rollouts ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'`,
    down: 'ALTER TABLE rollouts DROP COLUMN colour',
  },
  { version: newest + 2, up: 'CREATE TABLE more (x INTEGER) STRICT', down: null },
];

const versionOf = (folder: string, file = 'store.sqlite'): unknown => {
  const database = new DatabaseSync(join(folder, file), { readOnly: true });
  try {
    return database.prepare('PRAGMA user_version').get()?.['user_version'];
  } finally {
    database.close();
  }
};

/** A folder as the program with `steps` leaves it, with one rollout and its callback. */
async function writtenBy(folder: string, steps: readonly SchemaStep[]): Promise<void> {
  await using store = await openStore(folder, { steps });
  await store.accept(rollout('a'));
  await store.change({ id: 'a', from: ['queued'], set: {}, deliveries: [delivery('a')] });
}

async function assertHolds(folder: string, steps: readonly SchemaStep[]): Promise<void> {
  await using store = await openStore(folder, { steps });
  const { live, pending } = await store.recover();
  assert.deepEqual(ids(live), ['a']);
  assert.equal(live[0]!.request, rollout('a').request);
  assert.equal(pending[0]!.body, delivery('a').body);
}

const rejectsWith = (promise: Promise<unknown>, code: ErrorCode, text: RegExp) =>
  assert.rejects(promise, (error) => isRolloutError(error, code) && text.test(error.describe()));

test('a file of version 1 is upgraded with all it holds, after a copy that the older program still opens', async () => {
  await using folder = await temporary();
  await writtenBy(folder.path, firstOnly);
  assert.equal(versionOf(folder.path), 1);
  await assertHolds(folder.path, schemaSteps);
  assert.equal(versionOf(folder.path), newest);
  assert.equal(versionOf(folder.path, 'store.sqlite.v1'), 1);
});

test('a file goes back to version 1, after a copy, and forth again, and loses nothing', async () => {
  await using folder = await temporary();
  await writtenBy(folder.path, schemaSteps);
  const copy = join(folder.path, `store.sqlite.v${newest}`);
  assert.deepEqual(await downgradeStoreFolder(folder.path, 1, parts), {
    from: newest,
    to: 1,
    copy,
  });
  await assertHolds(folder.path, firstOnly);
  assert.equal(versionOf(folder.path, `store.sqlite.v${newest}`), newest);
  await assertHolds(folder.path, schemaSteps);
  assert.deepEqual(await downgradeStoreFolder(folder.path, newest, parts), {
    from: newest,
    to: newest,
    copy: null,
  });
});

test('a file of a newer program is refused by name and left alone, and the newer program takes it back', async () => {
  await using folder = await temporary();
  const newer = later.slice(0, newest + 1);
  await writtenBy(folder.path, newer);
  await rejectsWith(
    openStore(folder.path),
    'STORE_TOO_NEW',
    new RegExp(`version ${newest + 1}, .* up to ${newest}.*downgrade ${newest}`),
  );
  assert.equal(versionOf(folder.path), newest + 1);
  await downgradeStoreFolder(folder.path, newest, { ...parts, steps: newer });
  await assertHolds(folder.path, schemaSteps);
});

test('a step that cannot be undone is named with the copy to use, and so is a version that never was', async () => {
  await using folder = await temporary();
  await writtenBy(folder.path, later);
  for (const target of [newest + 1, 0, newest + 9])
    await rejectsWith(
      downgradeStoreFolder(folder.path, target, { ...parts, steps: later }),
      'STORE_UNSUPPORTED',
      new RegExp(`from schema version ${newest + 2} to ${target}`),
    );
  assert.equal(versionOf(folder.path), newest + 2);
});

test('an upgrade that fails in its middle leaves the file as it was', async () => {
  await using folder = await temporary();
  await writtenBy(folder.path, schemaSteps);
  const broken = [
    ...schemaSteps,
    { version: newest + 1, up: 'CREATE TABLE half (x INTEGER); CREATE TABL oops', down: null },
  ];
  await rejectsWith(openStore(folder.path, { steps: broken }), 'STORE_FAILED', /syntax error/);
  assert.equal(versionOf(folder.path), newest);
  await assertHolds(folder.path, schemaSteps);
});

test('a folder in use is not taken back to an earlier version', async () => {
  await using folder = await temporary();
  await using store = await openStore(folder.path);
  await store.accept(rollout('a'));
  await rejectsWith(
    downgradeStoreFolder(folder.path, 1, parts),
    'STORE_LOCKED',
    new RegExp(`process ${process.pid} uses`),
  );
});

test('a file that is no store, or no SQLite file, is refused and left alone', async () => {
  await using folder = await temporary();
  const foreign = new DatabaseSync(join(folder.path, 'store.sqlite'));
  foreign.exec('CREATE TABLE theirs (x INTEGER)');
  foreign.close();
  await rejectsWith(openStore(folder.path), 'STORE_FAILED', /is not a store of Slipway/);
  await writeFile(join(folder.path, 'store.sqlite'), 'x'.repeat(10_000));
  await rejectsWith(openStore(folder.path), 'STORE_DAMAGED', /put a backup in the place/);
});
