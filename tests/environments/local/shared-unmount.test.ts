import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { never } from '../../../src/core/linked-abort.ts';
import { LoopTurns } from '../../../src/core/loop-turns.ts';
import { mountsBelow } from '../../../src/environments/local/removal.ts';
import { SharedUnmount } from '../../../src/environments/local/shared-unmount.ts';

const skip = process.getuid?.() === 0 ? false : 'mounting needs root';

describe('unmounting for many at once', { skip }, () => {
  it('does it for all, also behind one that cannot be unmounted', async () => {
    const root = mkdtempSync(path.join(os.tmpdir(), 'unmount-'));
    const points = ['a', 'b', 'c'].map((name) => path.join(root, name));
    try {
      for (const point of points) {
        mkdirSync(point);
        execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', point]);
      }
      const mounts = new SharedUnmount(new LoopTurns());
      const none = path.join(root, 'none');
      await Promise.all(
        [[none], ...points.map((one) => [one])].map((one) => mounts.unmount(one, never)),
      );
      assert.deepEqual(mountsBelow(root), []);
    } finally {
      for (const point of mountsBelow(root)) execFileSync('umount', ['--lazy', point]);
      rmSync(root, { recursive: true, force: true });
    }
  });

  it('ends only the waiting of who gives up', async () => {
    const mounts = new SharedUnmount(new LoopTurns());
    const gone = AbortSignal.abort(new Error('over'));
    await assert.rejects(mounts.unmount(['/nowhere/1'], gone), /over/);
    await mounts.unmount(['/nowhere/2'], never);
  });
});
