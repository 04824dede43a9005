/** The host's processes as /proc shows them. A process is named by pid and start time, so that a reused pid is another process. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** Clock ticks since boot. */
  readonly startTime: string;
  /** Ended, but not yet collected by its parent. */
  readonly isEnded: boolean;
  /** By a signal or by its tracer. */
  readonly isStopped: boolean;
}

/** `PID:START`. */
export function processKey(row: Pick<ProcessRow, 'pid' | 'startTime'>): string {
  return `${row.pid}:${row.startTime}`;
}

/** null when there is no such process (any more). */
export function readProcess(pid: number): ProcessRow | null {
  let line: string;
  try {
    line = readFileSync(`/proc/${pid}/stat`, 'latin1');
  } catch {
    return null;
  }
  // The command's name, in parentheses, may hold anything; fields are counted from behind it.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  const number = (at: number): number => Number(fields[at] ?? Number.NaN);
  return {
    pid,
    parent: number(1),
    group: number(2),
    session: number(3),
    startTime: fields[19] ?? '',
    isEnded: fields[0] === 'Z' || fields[0] === 'X' || fields[0] === 'x',
    isStopped: fields[0] === 'T' || fields[0] === 't',
  };
}

export function allPids(): readonly number[] {
  return readdirSync('/proc').map(Number).filter(Number.isInteger);
}

export function allProcesses(): readonly ProcessRow[] {
  return allPids()
    .map(readProcess)
    .filter((row) => row !== null);
}

/** Identity of a process's pid namespace; null when it has ended or may not be looked at. */
export function pidNamespaceOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return null;
  }
}

/** Living processes of a pid namespace and of all namespaces made inside it. */
export function pidNamespaceMembers(namespace: string): readonly ProcessRow[] {
  const rows = allProcesses();
  const own = rows.filter((row) => pidNamespaceOf(row.pid) === namespace);
  return descendants(rows, own).filter((row) => !row.isEnded);
}

/** The given processes and everything below them. */
export function descendants(
  rows: readonly ProcessRow[],
  roots: readonly ProcessRow[],
): readonly ProcessRow[] {
  const byParent = Map.groupBy(rows, (row) => row.parent);
  const found = new Map(roots.map((row) => [row.pid, row]));
  for (const row of found.values())
    // a Map also visits what is added on the way
    for (const child of byParent.get(row.pid) ?? [])
      if (!found.has(child.pid)) found.set(child.pid, child);
  return [...found.values()];
}

/** A process and those below it, by the kernel's own lists of children: cheaper than a look at all processes. */
export function familyOf(pid: number): readonly ProcessRow[] {
  const row = readProcess(pid);
  return row === null ? [] : [row, ...childPids(pid).flatMap(familyOf)];
}

/** Children of a process with one thread; empty when it has none, or has ended. */
export function childPids(pid: number): readonly number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1');
    return text.split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** SIGKILL; a process that has already ended is fine. */
export function killNow(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // it has ended
  }
}
