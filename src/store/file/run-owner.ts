import { readFileSync } from 'node:fs';
import type { RunOwner } from '../sandbox-journal.ts';

/** This process as the owner of a run. */
export function ownProcess(runId: string): RunOwner {
  return processOwner(runId, process.pid);
}

/** A process that runs now as the owner of a run. */
export function processOwner(runId: string, pid: number): RunOwner {
  return { runId, bootId: currentBootId(), pid, processStart: processStart(pid) ?? 0 };
}

/** Whether the very process that owns the run still runs: same boot, same pid, same start time. */
export function isRunning(owner: RunOwner): boolean {
  return owner.bootId === currentBootId() && processStart(owner.pid) === owner.processStart;
}

function currentBootId(): string {
  return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
}

/** Field 22 of `/proc/PID/stat`; null for a process that is not there or is a zombie. The name in field 2 may hold spaces and brackets. */
function processStart(pid: number): number | null {
  if (pid <= 0) return null;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return null;
    return Number(fields[19]);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return null;
    throw error;
  }
}
