import { setTimeout as delay } from 'node:timers/promises';
import type { HostScan, HostTable } from './host-scan.ts';
import {
  descendants,
  processKey,
  readProcess,
  signalRow,
  type ProcessRow,
} from './process-table.ts';

/** For a tree to stand still, and at least this many looks: on a busy machine one takes a while. */
const freezeMs = 250;
const freezeLooks = 6;

/**
 * SIGKILLs a process, its descendants and what shares its process group or session, again and again until none is found; at most for
 * `deadlineMs`. A process that left all three is not found: that is what `SandboxProcesses.kill` is for.
 */
export async function killProcessTree(
  pid: number,
  options: { readonly scan: HostScan; readonly deadlineMs: number },
): Promise<void> {
  const first = readProcess(pid);
  if (first === null) return;
  const { scan } = options;
  const until = performance.now() + options.deadlineMs;
  for (;;) {
    const frozen = await freeze(first, { scan, until });
    if (frozen.length === 0) return;
    for (const row of frozen) signalRow(row, 'SIGKILL');
    if (performance.now() > until) return;
    await delay(2);
  }
}

/**
 * SIGKILLs what a program has started, again and again until that program, which collects its dead, has ended; itself at the deadline. For a program
 * that ends when it has no child any more.
 */
export async function killChildrenOf(
  pid: number,
  options: { readonly scan: HostScan; readonly deadlineMs: number },
): Promise<void> {
  const first = readProcess(pid);
  if (first === null) return;
  const until = performance.now() + options.deadlineMs;
  while (performance.now() < until) {
    const rows = treeOf(first, await options.scan.table());
    if (rows.length === 0) return;
    for (const row of rows) if (row.pid !== pid) signalRow(row, 'SIGKILL');
    await delay(2);
  }
  await killProcessTree(pid, options);
}

/**
 * Stops all of the tree and answers it once none of it can fork any more: a child that is made while its parent is being killed would belong to
 * nobody. A stop takes time where a tracer passes signals on, and is not waited for long: what cannot be stopped is killed all the same.
 */
async function freeze(
  first: ProcessRow,
  { scan, until }: { readonly scan: HostScan; readonly until: number },
): Promise<readonly ProcessRow[]> {
  const giveUpAt = performance.now() + freezeMs;
  let before = '';
  for (let look = 1; ; look += 1) {
    const alive = treeOf(first, await scan.table());
    const now = alive.map(processKey).sort().join(' ');
    // Twice the same: between system calls a traced process looks stopped too.
    const isStill = now === before && alive.every((row) => row.isStopped);
    const isLate = performance.now() > giveUpAt && look >= freezeLooks;
    if (alive.length === 0 || isStill || isLate || performance.now() > until) return alive;
    before = now;
    for (const row of alive) signalRow(row, 'SIGSTOP');
    await delay(2);
  }
}

function treeOf(first: ProcessRow, table: HostTable): readonly ProcessRow[] {
  const roots = table.rows.filter((row) => belongs(row, first));
  return descendants(table.byParent, roots).filter((row) => !row.isEnded);
}

function belongs(row: ProcessRow, first: ProcessRow): boolean {
  if (row.pid === first.pid) return row.startTime === first.startTime;
  // Ids of groups and sessions are only the command's own when it leads them.
  return (
    (first.group === first.pid && row.group === first.group) ||
    (first.session === first.pid && row.session === first.session)
  );
}
