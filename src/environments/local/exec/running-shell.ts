import type { RunningShell } from '../../shared/shell-channel.ts';
import { killProcessTree } from '../processes/kill-tree.ts';
import { allPids, readProcess } from '../processes/process-table.ts';
import { readFileSync } from 'node:fs';
import type { SandboxCommand } from '../runtime/runtime.ts';

const killMs = 3_000;

/** A shell in a sandbox as a control channel wants it. */
export function runningShell(running: SandboxCommand, name: string): RunningShell {
  const { stdin, stdout, stderr } = running;
  if (stdin === null) throw new Error(`the control shell of ${name} has no input`);
  running.status.resume();
  return {
    stdin,
    stdout,
    stderr,
    ended: running.ended(),
    killTree: async (inner) => {
      const shell = await running.hostPid();
      const pid = shell === null ? null : hostPidOf(inner, shell);
      if (pid !== null) await killProcessTree(pid, killMs);
    },
    kill: async () => {
      const shell = await running.hostPid();
      if (shell !== null) await killProcessTree(shell, killMs);
      running.release();
    },
  };
}

/** The host's number of a child of `parent` that has the number `inner` in its own pid namespace. */
function hostPidOf(inner: number, parent: number): number | null {
  for (const pid of allPids()) {
    if (readProcess(pid)?.parent !== parent) continue;
    try {
      const status = readFileSync(`/proc/${pid}/status`, 'latin1');
      const numbers = /^NSpid:\s*(.*)$/m.exec(status)?.[1]?.split(/\s+/) ?? [];
      if (Number(numbers.at(-1)) === inner) return pid;
    } catch {
      continue; // it has ended
    }
  }
  return null;
}
