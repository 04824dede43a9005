import { setTimeout as delay } from 'node:timers/promises';
import {
  allProcesses,
  descendants,
  killNow,
  readProcess,
  type ProcessRow,
} from './process-table.ts';

/**
 * SIGKILLs a process, its descendants and what shares its process group or session, again and again until none is found; at most for
 * `deadlineMs`. A process that left all three is not found: that is what `SandboxProcesses.kill` is for.
 */
export async function killProcessTree(pid: number, deadlineMs: number): Promise<void> {
  const first = readProcess(pid);
  if (first === null) return;
  const until = performance.now() + deadlineMs;
  for (;;) {
    const rows = allProcesses();
    const roots = rows.filter((row) => belongs(row, first));
    const alive = descendants(rows, roots).filter((row) => !row.isEnded);
    if (alive.length === 0) return;
    // Stopped first, so that none forks while the others are being killed.
    for (const row of alive) stopNow(row.pid);
    for (const row of descendants(allProcesses(), alive)) killNow(row.pid);
    if (performance.now() > until) return;
    await delay(2);
  }
}

function belongs(row: ProcessRow, first: ProcessRow): boolean {
  if (row.pid === first.pid) return row.startTime === first.startTime;
  // Ids of groups and sessions are only the command's own when it leads them.
  return (
    (first.group === first.pid && row.group === first.group) ||
    (first.session === first.pid && row.session === first.session)
  );
}

function stopNow(pid: number): void {
  try {
    process.kill(pid, 'SIGSTOP');
  } catch {
    // it has ended
  }
}
