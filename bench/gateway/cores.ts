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
const pageBytes = 4096;

interface ProcessUse {
  readonly ticks: number;
  readonly pages: number;
}

/** Of a process with its children, in milliseconds. */
export function processorMs(pid: number): number {
  return familyOf(pid).reduce((sum, { ticks }) => sum + ticks, 0) / ticksPerMs;
}

/** Of a process with its children. */
export function memoryBytes(pid: number): number {
  return familyOf(pid).reduce((sum, { pages }) => sum + pages, 0) * pageBytes;
}

function familyOf(pid: number): readonly ProcessUse[] {
  const parents = new Map<number, number[]>();
  const uses = new Map<number, ProcessUse>();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const fields = statOf(name);
    if (fields === null) continue;
    const parent = Number(fields[1]);
    parents.set(parent, [...(parents.get(parent) ?? []), Number(name)]);
    const ticks = Number(fields[11]) + Number(fields[12]);
    uses.set(Number(name), { ticks, pages: Number(fields[21]) });
  }
  const family = [pid];
  for (const one of family) family.push(...(parents.get(one) ?? []));
  return family.flatMap((one) => uses.get(one) ?? []);
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
