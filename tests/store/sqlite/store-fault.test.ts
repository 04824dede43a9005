import assert from 'node:assert/strict';
import { open, readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import { errorOf } from '../../../src/core/error-fault.ts';
import { SqliteRolloutStore } from '../../../src/store/sqlite/sqlite-rollout-store.ts';
import { faultOf } from '../../../src/store/sqlite/store-fault.ts';
import { rollout } from '../../conformance/store/bench.ts';
import { until } from '../../support/until.ts';
import { openStore, parts, temporary } from './opening.ts';

const later = ['STORE_FAILED', true] as const;
const defect = ['STORE_FAILED', false] as const;
const damaged = ['STORE_DAMAGED', false] as const;
const full = ['DISK_FULL', true] as const;

const rows: readonly (readonly [
  name: string,
  code: number | string | null,
  meaning: readonly [string, boolean],
])[] = [
  ['ERROR', 1, defect],
  ['PERM', 3, later],
  ['BUSY', 5, later],
  ['LOCKED', 6, later],
  ['NOMEM', 7, later],
  ['READONLY', 8, later],
  ['READONLY_DBMOVED', 1032, damaged],
  ['IOERR', 10, later],
  ['IOERR_READ', 266, damaged],
  ['IOERR_SHORT_READ', 522, damaged],
  ['IOERR_WRITE', 778, later],
  ['IOERR_FSYNC', 1034, later],
  ['IOERR_DATA', 8202, damaged],
  ['IOERR_CORRUPTFS', 8458, damaged],
  ['CORRUPT', 11, damaged],
  ['CORRUPT_INDEX', 779, damaged],
  ['FULL', 13, full],
  ['CANTOPEN', 14, later],
  ['TOOBIG', 18, defect],
  ['CONSTRAINT_UNIQUE', 2067, defect],
  ['MISUSE', 21, defect],
  ['NOTADB', 26, damaged],
  ['ENOSPC', 'ENOSPC', full],
  ['EDQUOT', 'EDQUOT', full],
  ['EIO', 'EIO', later],
  ['another error', 'ERR_INVALID_ARG_TYPE', defect],
  ['no code', null, defect],
];

describe('a failure of SQLite', () => {
  for (const [name, code, [expected, isRetryable]] of rows)
    it(`${name} is ${expected}, ${isRetryable ? 'and tried again' : 'the same at every try'}`, () => {
      const of = typeof code === 'number' ? { errcode: code, code: 'ERR_SQLITE_ERROR' } : { code };
      const error = errorOf(faultOf(Object.assign(new Error('it went wrong'), of)));
      assert.ok(isRolloutError(error));
      assert.deepEqual([error.code, error.retryable], [expected, isRetryable]);
      assert.match(error.message, /it went wrong/);
      if (expected === 'STORE_DAMAGED') assert.match(error.remedy ?? '', /docs\/store\.md, Backup/);
    });
});

const pageBytes = 4096;

/** Puts other bytes over the pages that hold bodies of requests. */
async function damageBodies(file: string, marker: string): Promise<void> {
  const bytes = await readFile(file);
  await using handle = await open(file, 'r+');
  for (let at = pageBytes; at < bytes.length; at += pageBytes)
    if (bytes.subarray(at, at + pageBytes).includes(marker))
      await handle.write(Buffer.alloc(pageBytes, 0xee), 0, pageBytes, at);
}

describe('a store whose file is damaged', () => {
  it('is lost when that is found, takes nothing more, and can be closed', async () => {
    await using folder = await temporary();
    const marker = 'body of a request '.repeat(100);
    {
      await using store = await openStore(folder.path);
      for (let at = 0; at < 20; at += 1)
        await store.accept(rollout(`r-${at}`, { request: JSON.stringify({ marker }) }));
    }
    await damageBodies(path.join(folder.path, 'store.sqlite'), marker);
    const lost: Error[] = [];
    const store = await SqliteRolloutStore.open(folder.path, {
      ...parts,
      onLost: (reason) => void lost.push(reason),
    });
    const isDamage = (error: unknown): boolean => isRolloutError(error, 'STORE_DAMAGED');
    try {
      await assert.rejects(store.rollout('r-5'), isDamage);
      await until('it is lost', () => lost.length > 0);
      assert.ok(isDamage(lost[0]));
      await assert.rejects(store.accept(rollout('later')), isDamage);
    } finally {
      await store.close();
    }
    assert.equal(lost.length, 1);
    // The folder is free again.
    await (await openStore(folder.path)).close();
  });
});
