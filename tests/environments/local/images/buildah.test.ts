import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { isRolloutError } from '../../../../src/core/errors.ts';
import { never } from '../../../../src/core/linked-abort.ts';
import { findProgram } from '../../../../src/environments/local/host-command.ts';
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

describe('a build by buildah', () => {
  const lack = findProgram('buildah') === null ? 'buildah is not installed' : false;

  it('that fails leaves no container and no mount', { skip: lack, timeout: 60_000 }, async (t) => {
    const dir = mkdtempSync(path.join(tmpdir(), 'slipway-buildah-'));
    const data = path.join(dir, 'data');
    const store = ['--root', path.join(data, 'storage'), '--runroot', path.join(data, 'run')];
    t.after(() => {
      execFileSync('buildah', [...store, 'rm', '--all']);
      spawnSync('umount', ['--recursive', path.join(data, 'storage/overlay')]);
      rmSync(dir, { recursive: true, force: true });
    });
    const contextDir = path.join(dir, 'context');
    mkdirSync(contextDir);
    writeFileSync(
      path.join(contextDir, 'Dockerfile'),
      'FROM scratch\nCOPY Dockerfile /x\nRUN ["/absent"]\n',
    );
    const request = { contextDir, name: 'fails', extraCaBundle: null, onLine: () => undefined };
    await assert.rejects(new Buildah(data).build(request, never), (error) =>
      isRolloutError(error, 'IMAGE_BUILD_FAILED'),
    );
    const left = execFileSync('buildah', [...store, 'containers', '--all', '--quiet']);
    assert.equal(left.toString(), '');
  });
});
