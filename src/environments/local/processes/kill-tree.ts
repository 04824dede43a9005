import { setTimeout as delay } from 'node:timers/promises';
import {
  allProcesses,
  descendants,
  killNow,
  processKey,
  readProcess,
  type ProcessRow,
} from './process-table.ts';

/** For a tree to stand still. */
const freezeMs = 250;

/**
 * SIGKILLs a process, its descendants and what shares its process group or session, again and again until none is found; at most for
 * `deadlineMs`. A process that left all three is not found: that is what `SandboxProcesses.kill` is for.
 */
export async function killProcessTree(pid: number, deadlineMs: number): Promise<void> {
  const first = readProcess(pid);
  if (first === null) return;
  const until = performance.now() + deadlineMs;
  for (;;) {
    const frozen = await freeze(first, until);
    if (frozen.length === 0) return;
    for (const row of frozen) killNow(row.pid);
    if (performance.now() > until) return;
    await delay(2);
  }
}

/**
 * Stops all of the tree and answers it once none of it can fork any more: a child that is made while its parent is being killed would belong to
 * nobody. A stop takes time where a tracer passes signals on, and is not waited for long: what cannot be stopped is killed all the same.
 */
async function freeze(first: ProcessRow, until: number): Promise<readonly ProcessRow[]> {
  const giveUpAt = Math.min(until, performance.now() + freezeMs);
  let before = '';
  for (;;) {
    const rows = allProcesses();
    const roots = rows.filter((row) => belongs(row, first));
    const alive = descendants(rows, roots).filter((row) => !row.isEnded);
    const now = alive.map(processKey).sort().join(' ');
    // Twice the same: between system calls a traced process looks stopped too.
    const isStill = now === before && alive.every((row) => row.isStopped);
    if (alive.length === 0 || isStill || performance.now() > giveUpAt) return alive;
    before = now;
    for (const row of alive) stopNow(row.pid);
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
