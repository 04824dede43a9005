import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';
import { mock, test } from 'node:test';
import { watchEnd } from '../../../../src/environments/local/exec/exec.ts';

test('a command that is only beginning is left alone, and one whose shell was killed is noticed', async () => {
  const child = spawn('sleep', ['1000'], { stdio: ['pipe', 'pipe', 'pipe', 'pipe'] });
  const hasExited = new Promise((resolve) => child.once('exit', resolve));
  const [stdin, stdout, stderr, status] = child.stdio as unknown as [
    Writable,
    Readable,
    Readable,
    Readable,
  ];
  const dead = spawn('true');
  await new Promise((resolve) => dead.once('close', resolve));
  let starter: number | null = child.pid ?? null;
  let asked = 0;
  let ends = 0;
  const running = {
    ...{ child, stdin, stdout, stderr, status },
    starter: () => starter,
    hostPid: () => {
      asked += 1;
      return Promise.resolve(dead.pid ?? null);
    },
    ended: () => Promise.resolve(),
    release: () => undefined,
  };
  mock.timers.enable({ apis: ['setInterval', 'setTimeout'] });
  try {
    const stop = watchEnd(running, () => (ends += 1));
    mock.timers.tick(5_000);
    assert.equal(asked, 0);
    starter = null;
    mock.timers.tick(500);
    assert.equal(asked, 1);
    await Promise.resolve();
    mock.timers.tick(500);
    assert.equal(ends, 1);
    stop();
  } finally {
    mock.timers.reset();
    child.kill('SIGKILL');
    await hasExited;
  }
});
