import { readFileSync } from 'node:fs';
import type { RunningShell } from '../../shared/shell-channel.ts';
import { killProcessTree } from '../processes/kill-tree.ts';
import type { HostScan } from '../processes/host-scan.ts';
import { childPids } from '../processes/process-table.ts';
import type { SandboxCommand } from '../runtime/runtime.ts';
import { killCommand } from './exec.ts';

const killMs = 3_000;

/** A shell in a sandbox as a control channel wants it. */
export function runningShell(
  running: SandboxCommand,
  { name, scan }: { readonly name: string; readonly scan: HostScan },
): RunningShell {
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
      if (pid !== null) await killProcessTree(pid, { scan, deadlineMs: killMs });
    },
    kill: () => killCommand(running, scan),
  };
}

/** The host's number of a child of `parent` that has the number `inner` in its own pid namespace. */
function hostPidOf(inner: number, parent: number): number | null {
  for (const pid of childPids(parent)) {
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
