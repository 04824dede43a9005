import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { isRolloutError } from '../../../../src/core/errors.ts';
import { never } from '../../../../src/core/linked-abort.ts';
import { Transfers } from '../../../../src/environments/local/files/transfers.ts';

test('folders nested without end are refused before they use up the descriptors', async (t) => {
  const dir = mkdtempSync(path.join(tmpdir(), 'slipway-copy-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const transfers = new Transfers(() => path.join(dir, 'root'), { ownsAsRoot: false });
  mkdirSync(path.join(dir, 'root/deep', 'd/'.repeat(400)), { recursive: true });
  mkdirSync(path.join(dir, 'root/flat', 'd/'.repeat(100)), { recursive: true });
  const download = (from: string) =>
    transfers.downloadDir(from, path.join(dir, 'out'), { signal: never });
  await assert.rejects(download('/deep'), (error) => isRolloutError(error, 'TRANSFER_FAILED'));
  await download('/flat');
});

test('what could not be named on the host is refused before it is there', async (t) => {
  const dir = mkdtempSync(path.join(tmpdir(), 'slipway-copy-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const transfers = new Transfers(() => path.join(dir, 'root'), { ownsAsRoot: false });
  mkdirSync(path.join(dir, 'root', `${'n'.repeat(200)}/`.repeat(15)), { recursive: true });
  const out = path.join(dir, 'out');
  await assert.rejects(
    transfers.downloadDir('/', out, { signal: never }),
    (error) => isRolloutError(error, 'TRANSFER_FAILED') && error.remedy !== null,
  );
  for (const made of readdirSync(out, { recursive: true, encoding: 'utf8' }))
    assert.ok(Buffer.byteLength(made) <= 2048);
});
