import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { scanProcesses } from '../../../src/environments/shared/process-scan.ts';

function parentOf(pid: number): number | null {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return Number(line.slice(line.lastIndexOf(')') + 2).split(' ')[1]);
  } catch {
    return null;
  }
}

describe('a scan of all processes', () => {
  it('finds this one and its children', async () => {
    const child = spawn('sleep', ['60']);
    try {
      const found = await scanProcesses(parentOf);
      assert.ok(found.has(process.pid));
      assert.equal(found.get(child.pid!), process.pid);
    } finally {
      child.kill('SIGKILL');
      await once(child, 'close');
    }
  });

  it('finds a process that is made while it goes on', async () => {
    const made: ChildProcess[] = [];
    const found = await scanProcesses((pid) => {
      if (made.length === 0) made.push(spawn('sleep', ['60']));
      return parentOf(pid);
    });
    const [child] = made;
    try {
      assert.equal(found.get(child!.pid!), process.pid);
    } finally {
      child!.kill('SIGKILL');
      await once(child!, 'close');
    }
  });

  it('lets the event loop turn when it takes long', async () => {
    const others = Array.from({ length: 20 }, () => spawn('sleep', ['60']));
    let turns = 0;
    let isDone = false;
    const loop = (): void => {
      turns += 1;
      if (!isDone) setImmediate(loop);
    };
    setImmediate(loop);
    try {
      await scanProcesses((pid) => {
        const until = performance.now() + 1;
        while (performance.now() < until); // as long as a slow look
        return pid;
      });
      isDone = true;
      assert.ok(turns >= 5, `${turns} turns`);
    } finally {
      for (const other of others) other.kill('SIGKILL');
      await Promise.all(others.map((other) => once(other, 'close')));
    }
  });
});
