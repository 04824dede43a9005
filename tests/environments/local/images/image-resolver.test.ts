import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { systemClock } from '../../../../src/core/clock.ts';
import { isRolloutError, RolloutError } from '../../../../src/core/errors.ts';
import { never } from '../../../../src/core/linked-abort.ts';
import { ImageResolver } from '../../../../src/environments/local/images/image-resolver.ts';
import { ImageStore } from '../../../../src/environments/local/images/image-store.ts';
import { compileLocalOptions, localPorts } from '../../../../src/environments/local/options.ts';
import { FileLocks } from '../../../../src/store/file/file-lock.ts';

test('a trial that is cancelled while it waits for an image does not fail the next one', async (t) => {
  const dir = mkdtempSync(path.join(tmpdir(), 'slipway-resolver-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const cancel = new AbortController();
  const files = new FileLocks(systemClock);
  const locks = {
    tryAcquire: (file: string) => files.tryAcquire(file),
    // The moment in which the first trial has begun to wait.
    acquire: async (...args: Parameters<FileLocks['acquire']>) => {
      cancel.abort(new RolloutError('CANCELLED', 'enough', { phase: 'environment' }));
      await turn();
      return files.acquire(...args);
    },
  };
  const resolver = new ImageResolver(
    compileLocalOptions({ stateDir: dir, cacheDir: dir, pullStartTimeoutMs: 1 }),
    localPorts({ locks }),
    new ImageStore(path.join(dir, 'images'), locks),
  );
  const wish = {
    source: { kind: 'prebuilt', reference: 'registry.invalid/none:1' },
    forceBuild: false,
    extraCaBundle: null,
    onLine: () => undefined,
  } as const;
  await assert.rejects(resolver.resolve(wish, cancel.signal), (error) =>
    isRolloutError(error, 'CANCELLED'),
  );
  await turn();
  await turn(); // the work that nobody waits for any more has ended
  await assert.rejects(resolver.resolve(wish, never), (error) =>
    isRolloutError(error, 'IMAGE_NOT_FOUND'),
  );
});
