import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { LoopTurns } from '../../../../src/core/loop-turns.ts';
import { HeldNamespace } from '../../../../src/environments/local/processes/held-namespace.ts';
import { HostScan } from '../../../../src/environments/local/processes/host-scan.ts';
import { SandboxProcesses } from '../../../../src/environments/local/processes/sandbox-processes.ts';

const skip = process.getuid?.() === 0 ? false : 'making a pid namespace needs root';

interface Member {
  readonly parent: ChildProcess;
  readonly pid: number;
}

/** A process that is the first of a pid namespace of its own. */
async function firstOfNamespace(): Promise<Member> {
  const script = 'echo up; exec sleep 60';
  const parent = spawn('unshare', ['--pid', '--fork', 'sh', '-c', script]);
  await once(parent.stdout, 'data');
  const children = `/proc/${parent.pid!}/task/${parent.pid!}/children`;
  return { parent, pid: Number(readFileSync(children, 'utf8').trim()) };
}

async function end({ parent, pid }: Member): Promise<void> {
  const closed = once(parent, 'close');
  process.kill(pid, 'SIGKILL');
  await closed;
}

describe('the pid namespace of a sandbox', { skip }, () => {
  it('keeps its number while it is held, so that no other sandbox is taken for it', async () => {
    const first = await firstOfNamespace();
    const host = { scan: new HostScan(), turns: new LoopTurns() };
    const parts = { cgroup: null, hasNamespace: true, traced: null, ...host };
    const processes = new SandboxProcesses(first.pid, parts);
    assert.equal((await processes.all()).length, 1);
    await end(first);
    const others: Member[] = [];
    for (let count = 0; count < 5; count += 1) others.push(await firstOfNamespace());
    try {
      assert.deepEqual(await processes.all(), []);
      processes.close();
      processes.close();
      assert.deepEqual(await processes.all(), []);
    } finally {
      for (const other of others) await end(other);
    }
  });

  it('is let go of: no descriptor stays open', async () => {
    const first = await firstOfNamespace();
    const before = readdirSync('/proc/self/fd').length;
    {
      using held = HeldNamespace.of(first.pid);
      assert.equal(readdirSync('/proc/self/fd').length, before + 1);
      assert.match(held?.id ?? '', /^pid:/);
    }
    assert.equal(readdirSync('/proc/self/fd').length, before);
    await end(first);
  });
});
