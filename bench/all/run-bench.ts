/** Runs one bench as a process of its own at short size, shows what it prints, and keeps its report: all of it, or what there was when its time was over. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import type { BenchDocument } from '../report.ts';

export interface BenchRun {
  readonly bench: string;
  readonly seconds: number;
  /** null = it came to no report. */
  readonly document: BenchDocument | null;
  /** Why it came to no report, or to a part of one. */
  readonly problem: string | null;
}

/** Time to put away what it had started, when its time is over. */
const endMs = 30_000;

export async function runBench(bench: string, limitMs: number): Promise<BenchRun> {
  const began = performance.now();
  // A group of its own: what it started ends with it.
  const child = spawn(process.execPath, [path.join(import.meta.dirname, `../${bench}.ts`)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, BENCH_SIZE: 'short' },
    detached: true,
  });
  const seen: { document: BenchDocument | null; isLate: boolean } = {
    document: null,
    isLate: false,
  };
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.startsWith('{"bench":')) seen.document ??= JSON.parse(line) as BenchDocument;
    else console.log(line);
  });
  const end = (signal: 'SIGTERM' | 'SIGKILL'): void => {
    seen.isLate = true;
    if (child.pid !== undefined) killGroup(child.pid, signal);
  };
  // The second begins with the first: a machine that stood still must not end both at once.
  const timers = [
    setTimeout(() => {
      timers.push(setTimeout(() => end('SIGKILL'), endMs));
      end('SIGTERM');
    }, limitMs),
  ];
  const [code, signal] = (await once(child, 'close')) as [number | null, string | null];
  for (const timer of timers) clearTimeout(timer);
  const { document, isLate } = seen;
  const ending = isLate
    ? `it took longer than its ${Math.round(limitMs / 1_000)} s`
    : `it ended with ${code ?? signal} and without a report`;
  return {
    ...{ bench, seconds: (performance.now() - began) / 1_000, document },
    problem: document === null || document.isPartial === true ? ending : null,
  };
}

function killGroup(pid: number, signal: 'SIGTERM' | 'SIGKILL'): void {
  try {
    process.kill(-pid, signal);
  } catch {
    // It has gone by itself.
  }
}
