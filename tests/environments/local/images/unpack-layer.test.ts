import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { isRolloutError } from '../../../../src/core/errors.ts';
import { never } from '../../../../src/core/linked-abort.ts';
import { unpackLayer } from '../../../../src/environments/local/images/unpack-layer.ts';

test(
  'a compressed layer that breaks off is an invalid image, at once',
  { timeout: 20_000 },
  async (t) => {
    const dir = mkdtempSync(path.join(tmpdir(), 'slipway-layer-'));
    t.after(() => rmSync(dir, { recursive: true, force: true }));
    const half = gzipSync(randomBytes(200_000)).subarray(0, 100_000);
    const source = {
      diffId: `sha256:${'0'.repeat(64)}`,
      open: () => Promise.resolve(Readable.from([half])),
    };
    await assert.rejects(unpackLayer(source, dir, never), (error) => {
      assert.ok(isRolloutError(error, 'IMAGE_INVALID'));
      assert.match(error.message, /cannot be read/);
      return true;
    });
  },
);
