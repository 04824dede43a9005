import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { test } from 'node:test';
import { never } from '../../../../src/core/linked-abort.ts';
import { HostScan } from '../../../../src/environments/local/processes/host-scan.ts';
import { openCommand } from '../../../../src/environments/local/exec/interactive-command.ts';

test('a shell that does not say that the program begins is killed, and is EXEC_FAILED', async () => {
  const child = spawn('sh', ['-c', 'exec yes'], { stdio: ['pipe', 'pipe', 'pipe', 'pipe'] });
  const [stdin, stdout, stderr, status] = child.stdio as unknown as [
    Writable,
    Readable,
    Readable,
    Readable,
  ];
  const running = {
    ...{ child, stdin, stdout, stderr, status },
    hostPid: () => Promise.resolve(child.pid ?? null),
    ended: () => Promise.resolve(),
    release: () => undefined,
  };
  const hasEnded = new Promise((resolve) => child.once('close', resolve));
  await assert.rejects(
    openCommand(
      { running, isAlive: () => true, scan: new HostScan(), startMs: 100 },
      { onOutput: () => undefined },
      never,
    ),
    { code: 'EXEC_FAILED', message: /did not begin/ },
  );
  await hasEnded;
});
