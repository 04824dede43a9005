import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { getEventListeners } from 'node:events';
import { mkdtempDisposable, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { systemClock } from '../../../src/core/clock.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { isRolloutError } from '../../../src/core/errors.ts';
import { FileLocks } from '../../../src/store/file/file-lock.ts';
import { Child } from './child.ts';

const locks = new FileLocks(systemClock);
const temporary = () => mkdtempDisposable(join(tmpdir(), 'slipway-lock-'));

test('a second caller in the same process does not get a held lock', async () => {
  await using folder = await temporary();
  const file = join(folder.path, 'deep', 'a.lock');
  const held = locks.tryAcquire(file);
  assert.ok(held);
  assert.equal(locks.tryAcquire(file), null);
  assert.equal(new FileLocks(systemClock).tryAcquire(file), null);
  held.release();
  const again = locks.tryAcquire(file);
  assert.ok(again);
  again.release();
});

test('releasing twice frees the lock once and not that of the next holder', async () => {
  await using folder = await temporary();
  const file = join(folder.path, 'a.lock');
  const first = locks.tryAcquire(file)!;
  first.release();
  const second = locks.tryAcquire(file)!;
  first.release();
  assert.equal(locks.tryAcquire(file), null);
  second.release();
});

test('different files are different locks', async () => {
  await using folder = await temporary();
  const held = ['a', 'b'].map((name) => locks.tryAcquire(join(folder.path, name)));
  assert.ok(held.every((lock) => lock !== null));
  for (const lock of held) lock.release();
});

test('another process is refused while this one holds the lock, and the other way round', async () => {
  await using folder = await temporary();
  const file = join(folder.path, 'a.lock');
  const held = locks.tryAcquire(file)!;
  {
    await using refused = new Child('lock-holder.ts', [file]);
    assert.equal(await refused.line(), 'refused');
  }
  held.release();
  await using holder = new Child('lock-holder.ts', [file]);
  assert.equal(await holder.line(), 'held');
  assert.equal(locks.tryAcquire(file), null);
  holder.say('let go');
  assert.equal(await holder.line(), 'released');
  const lock = locks.tryAcquire(file);
  assert.ok(lock);
  lock.release();
});

test('SIGKILL of the holder frees the lock for a process that waits', async () => {
  await using folder = await temporary();
  const file = join(folder.path, 'a.lock');
  await using holder = new Child('lock-holder.ts', [file]);
  assert.equal(await holder.line(), 'held');
  const waiting = locks.acquire(file, { timeoutMs: 10_000, signal: never });
  await holder.kill();
  const lock = await waiting;
  lock.release();
});

test('waiting ends with LOCK_TIMEOUT after the limit', async () => {
  await using folder = await temporary();
  const file = join(folder.path, 'a.lock');
  const held = locks.tryAcquire(file)!;
  await assert.rejects(locks.acquire(file, { timeoutMs: 30, signal: never }), {
    code: 'LOCK_TIMEOUT',
  });
  held.release();
});

test('waiting ends with the reason of the signal and leaves no listener on it', async () => {
  await using folder = await temporary();
  const file = join(folder.path, 'a.lock');
  const held = locks.tryAcquire(file)!;
  const controller = new AbortController();
  const waiting = locks.acquire(file, { timeoutMs: 60_000, signal: controller.signal });
  controller.abort(new Error('no longer needed'));
  await assert.rejects(waiting, { message: 'no longer needed' });
  await assert.rejects(locks.acquire(file, { timeoutMs: 1, signal: controller.signal }), {
    message: 'no longer needed',
  });
  assert.equal(getEventListeners(controller.signal, 'abort').length, 0);
  held.release();
});

test('a lock file that cannot be made is an error that names it', async () => {
  await using folder = await temporary();
  await writeFile(join(folder.path, 'plain'), '');
  assert.throws(() => locks.tryAcquire(join(folder.path, 'plain', 'a.lock')), {
    code: 'JOURNAL_FAILED',
    message: /a\.lock/,
  });
});

test('a lock on a full disk is DISK_FULL, not a failure of the journal', async (t) => {
  await using folder = await temporary();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'slipway-test', folder.path]);
  } catch {
    t.skip('mounting needs root');
    return;
  }
  try {
    await writeFile(join(folder.path, 'noise'), Buffer.alloc(64 * 1024)).catch(() => undefined);
    assert.throws(
      () => locks.tryAcquire(join(folder.path, 'a.lock')),
      (error) => isRolloutError(error, 'DISK_FULL') && error.remedy !== null,
    );
  } finally {
    execFileSync('umount', [folder.path]);
  }
});

test('a lock below something that is no folder says what to do', async () => {
  await using folder = await temporary();
  await writeFile(join(folder.path, 'file'), '');
  assert.throws(
    () => locks.tryAcquire(join(folder.path, 'file', 'a.lock')),
    (error) => isRolloutError(error, 'JOURNAL_FAILED') && error.remedy !== null,
  );
});
