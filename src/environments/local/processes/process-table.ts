/** Single processes of the host as /proc shows them. A process is named by pid and start time, so that a reused pid is another process. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

export interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  readonly group: number;
  readonly session: number;
  /** As the kernel keeps it: 15 characters. */
  readonly name: string;
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
    line = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return null;
  }
  // The command's name, in parentheses, may hold anything; fields are counted from behind it.
  const nameEnd = line.lastIndexOf(')');
  const fields = line.slice(nameEnd + 2).split(' ', 20);
  const number = (at: number): number => Number(fields[at] ?? Number.NaN);
  return {
    pid,
    parent: number(1),
    group: number(2),
    session: number(3),
    name: line.slice(line.indexOf('(') + 1, nameEnd),
    startTime: fields[19] ?? '',
    isEnded: fields[0] === 'Z' || fields[0] === 'X' || fields[0] === 'x',
    isStopped: fields[0] === 'T' || fields[0] === 't',
  };
}

/** Whether a process has ended with all its threads, collected or not. One whose first thread has ended may go on in others. */
export function hasEnded(pid: number, startTime: string): boolean {
  const row = readProcess(pid);
  if (row?.startTime !== startTime) return true;
  if (!row.isEnded) return false;
  try {
    return readdirSync(`/proc/${pid}/task`).length <= 1;
  } catch {
    return true; // collected meanwhile
  }
}

/** Identity of a process's pid namespace; null when it has ended or may not be looked at. */
export function pidNamespaceOf(pid: number): string | null {
  try {
    return readlinkSync(`/proc/${pid}/ns/pid`);
  } catch {
    return null;
  }
}

/** The given processes and everything below them. */
export function descendants<Row extends Pick<ProcessRow, 'pid'>>(
  byParent: ReadonlyMap<number, readonly Row[]>,
  roots: readonly Row[],
): readonly Row[] {
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

/** What has ended is fine. A row may be a moment old, and its number another process's by now, which is left alone. */
export function signalRow(
  row: Pick<ProcessRow, 'pid' | 'startTime'>,
  signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT',
): void {
  if (readProcess(row.pid)?.startTime !== row.startTime) return;
  try {
    process.kill(row.pid, signal);
  } catch {
    // it has ended
  }
}
