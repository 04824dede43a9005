import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtempDisposable, readFile, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { LoopTurns } from '../../../../src/core/loop-turns.ts';
import { killCommand } from '../../../../src/environments/local/exec/exec.ts';
import { HostScan } from '../../../../src/environments/local/processes/host-scan.ts';
import { readProcess } from '../../../../src/environments/local/processes/process-table.ts';
import { OciRuntime } from '../../../../src/environments/local/runtime/oci-runtime.ts';
import { SandboxFolder } from '../../../../src/environments/local/sandbox-folder.ts';

test('a command that is only beginning is killed with the runtime that begins it, before its pid is known', async () => {
  await using dir = await mkdtempDisposable(path.join(os.tmpdir(), 'slipway-kill-'));
  const folder = new SandboxFolder(dir.path, 'box');
  const program = path.join(dir.path, 'runc');
  const started = path.join(dir.path, 'started');
  // A runtime that has made its child and does not come to write the pid file.
  await writeFile(program, `#!/bin/sh\nsleep 1000 &\necho $! >${started}\nwait\n`);
  await chmod(program, 0o700);
  const runtime = new OciRuntime({ name: 'runc', program, prefix: [], turns: new LoopTurns() });
  await mkdir(folder.dir, { recursive: true });
  const running = runtime.command(
    folder,
    { args: ['true'], cwd: '/', env: [], user: { uid: 0, gid: 0, additionalGids: [] } } as never,
    { hasInput: false },
  );
  const until = Date.now() + 10_000;
  let child = 0;
  while (child === 0 && Date.now() < until) {
    child = Number(await readFile(started, 'utf8').catch(() => ''));
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  assert.ok(readProcess(child) !== null, 'the runtime has begun');
  await killCommand(running, new HostScan());
  assert.ok(readProcess(child)?.isEnded ?? true, 'its child is gone');
  await running.ended();
});
