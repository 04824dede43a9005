import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { isRolloutError } from '../../../../src/core/errors.ts';
import { never } from '../../../../src/core/linked-abort.ts';
import { Buildah } from '../../../../src/environments/local/images/buildah.ts';

/** A buildah that prints a line and fails. */
function failing(t: TestContext, line: string): Buildah {
  const dir = mkdtempSync(path.join(tmpdir(), 'slipway-buildah-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const program = path.join(dir, 'buildah');
  writeFileSync(program, `#!/bin/sh\necho '${line}' >&2\nexit 125\n`);
  chmodSync(program, 0o755);
  return new Buildah(path.join(dir, 'data'), program);
}

const options = { startMs: 5_000, signal: never, onLine: () => undefined };

describe('a pull by buildah', () => {
  it('that no registry answers is told apart from one that fills the disk', async (t) => {
    const silent = failing(t, 'dial tcp: lookup registry.example: no such host');
    assert.equal(await silent.pull('registry.example/x', options), false);
    const full = failing(t, 'writing blob: write /x: no space left on device');
    await assert.rejects(full.pull('registry.example/x', options), (error) =>
      isRolloutError(error, 'DISK_FULL'),
    );
  });
});
