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
import { until } from '../../../support/until.ts';

const kinds = [
  ['that is only beginning, before its pid is known', ''],
  ['that runs', 'while [ "$1" != --pid-file ]; do shift; done\necho $child >"$2"\n'],
] as const;

for (const [kind, writesPidFile] of kinds)
  test(`of a command ${kind} the runtime collects what was killed, and ends by itself`, async () => {
    await using dir = await mkdtempDisposable(path.join(os.tmpdir(), 'slipway-kill-'));
    const folder = new SandboxFolder(dir.path, 'box');
    const program = path.join(dir.path, 'runc');
    const [started, collected] = [path.join(dir.path, 'started'), path.join(dir.path, 'collected')];
    // Until it has done so the first process of a real sandbox cannot end.
    const lines = `sleep 1000 &\nchild=$!\n${writesPidFile}echo $child >${started}\nwait\nsleep 0.2\necho >${collected}`;
    await writeFile(program, `#!/bin/sh\n${lines}\n`);
    await chmod(program, 0o700);
    const runtime = new OciRuntime({ name: 'runc', program, prefix: [], turns: new LoopTurns() });
    await mkdir(folder.dir, { recursive: true });
    const running = runtime.command(
      folder,
      { args: ['true'], cwd: '/', env: [], user: { uid: 0, gid: 0, additionalGids: [] } } as never,
      { hasInput: false },
    );
    const read = (file: string): Promise<string> => readFile(file, 'utf8').catch(() => '');
    await until('the runtime has begun', async () => (await read(started)).endsWith('\n'));
    const child = Number(await read(started));
    assert.ok(readProcess(child) !== null, 'its child runs');
    await killCommand(running, new HostScan());
    assert.ok(readProcess(child)?.isEnded ?? true, 'its child is gone');
    await running.ended();
    assert.equal(await read(collected), '\n');
  });
