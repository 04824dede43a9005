/** Which core a process runs on, and the processor time that it took: what is compared has one core for itself, all else shares another. */
import { readdirSync, readFileSync } from 'node:fs';

/** `measured`: whoever is compared; `around`: load and upstream. */
export type Core = 'measured' | 'around';

const numbers: Record<Core, string> = { measured: '0', around: '1' };

export function onCore(core: Core, words: readonly string[]): readonly string[] {
  return ['taskset', '--cpu-list', numbers[core], ...words];
}

/** Linux counts a hundred of them in a second. */
const ticksPerMs = 1 / 10;

/** Of a process with its children, in milliseconds. */
export function processorMs(pid: number): number {
  const parents = new Map<number, number[]>();
  const ticks = new Map<number, number>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const fields = statOf(name);
    if (fields === null) continue;
    const parent = Number(fields[1]);
    parents.set(parent, [...(parents.get(parent) ?? []), Number(name)]);
    ticks.set(Number(name), Number(fields[11]) + Number(fields[12]));
  }
  const family = [pid];
  for (const one of family) family.push(...(parents.get(one) ?? []));
  return family.reduce((sum, one) => sum + (ticks.get(one) ?? 0), 0) / ticksPerMs;
}

function statOf(pid: string): readonly string[] | null {
  try {
    const line = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name of the program, in parentheses, may hold anything.
    return line.slice(line.lastIndexOf(')') + 2).split(' ');
  } catch {
    return null; // it has ended
  }
}
