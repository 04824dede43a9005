import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import { at, rollout } from '../../conformance/store/bench.ts';
import { openStore, temporary } from './opening.ts';

const megabyte = 1024 * 1024;

interface FullDisk extends AsyncDisposable {
  readonly folder: string;
  readonly maxSizeBytes?: number;
  /** Makes room; null = only a prune does. */
  readonly makeRoom: (() => Promise<void>) | null;
}

/** A small file system that is full but for two megabytes; null where this user may not mount one. */
async function smallDisk(parent: string): Promise<FullDisk | null> {
  const folder = join(parent, 'disk');
  await mkdir(folder);
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=8m', 'tmpfs', folder], { stdio: 'ignore' });
  } catch {
    return null;
  }
  const ballast = join(folder, 'ballast');
  await writeFile(ballast, Buffer.alloc(6 * megabyte));
  return {
    folder: join(folder, 'data'),
    makeRoom: () => rm(ballast),
    [Symbol.asyncDispose]: async () => void execFileSync('umount', [folder]),
  };
}

const limitedFile = async (parent: string): Promise<FullDisk> => ({
  folder: join(parent, 'data'),
  maxSizeBytes: megabyte,
  makeRoom: null,
  [Symbol.asyncDispose]: async () => undefined,
});

describe('a full disk', () => {
  for (const [name, make] of [
    ['a file that may not grow', limitedFile],
    ['a file system without space', smallDisk],
  ] as const)
    test(`refuses what needs space, loses nothing and goes on when there is space: ${name}`, async () => {
      await using temporaryFolder = await temporary();
      await using disk =
        (await make(temporaryFolder.path)) ?? (await limitedFile(temporaryFolder.path));
      const { folder, maxSizeBytes, makeRoom } = disk;
      await using store = await openStore(
        folder,
        maxSizeBytes === undefined ? {} : { maxSizeBytes },
      );
      const request = JSON.stringify({ text: 'x'.repeat(20_000) });
      const results = await Promise.allSettled(
        Array.from({ length: 400 }, (_, index) => store.accept(rollout(`r-${index}`, { request }))),
      );
      const accepted = results.flatMap((result, index) =>
        result.status === 'fulfilled' ? [`r-${index}`] : [],
      );
      const refusals = results.filter((result) => result.status === 'rejected');
      assert.ok(accepted.length > 0 && refusals.length > 0, `${accepted.length} accepted`);
      for (const { reason } of refusals)
        assert.ok(isRolloutError(reason, 'DISK_FULL'), String(reason));

      const kept = async () => (await store.recover()).live.map(({ id }) => id);
      assert.deepEqual(await kept(), accepted);
      const { events, newest } = await store.events({ after: 0, limit: 1000 });
      assert.deepEqual([events.length, newest], [accepted.length, accepted.length]);
      await assert.rejects(store.accept(rollout('more', { request })), (error) =>
        isRolloutError(error, 'DISK_FULL'),
      );

      if (makeRoom === null) {
        const [first] = accepted;
        await store.change({
          id: first!,
          from: ['queued'],
          set: { state: 'failure', endedAt: at(0) },
        });
        await store.prune({ maxAgeMs: 0, maxEnded: 0 }, at(1));
        accepted.shift();
      } else await makeRoom();
      assert.deepEqual(await store.accept(rollout('more', { request })), { kind: 'accepted' });
      assert.deepEqual(await kept(), [...accepted, 'more']);
    });
});
