import os from 'node:os';
import { readFileSync } from 'node:fs';

/** Linux counts in hundredths of a second. */
const tickMs = 10;

/** Of a process so far, and of its children that have ended. */
export function processorMs(pid: number): number {
  const line = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name of the program, in parentheses, may hold anything.
  const fields = line.slice(line.lastIndexOf(')') + 2).split(' ');
  return tickMs * fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0);
}

/** Of all processors since the machine has started. */
export function machineBusyMs(): number {
  return os
    .cpus()
    .reduce((sum, { times }) => sum + times.user + times.nice + times.sys + times.irq, 0);
}
