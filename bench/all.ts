/**
 * `npm run bench -- all [NAME...]`: every bench at short size, one after the other and in less than ten minutes, with one report of their goals as JSON and as Markdown, in
 * the folder `bench-report` or the one that `OUT` names. A bench whose time is over reports what it has. Exit 1 when a goal is missed, or
 * a bench did not come to the whole of its report.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { benchNames } from './all/benches.ts';
import { oneReport } from './all/one-report.ts';
import { runBench, type BenchRun } from './all/run-bench.ts';
import { plannedMs } from './all/times.ts';

const wholeMs = 570_000;

const benches = benchNames();
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !benches.includes(name));
if (unknown.length > 0) throw new Error(`no bench: ${unknown.join(', ')} (${benches.join(', ')})`);

const began = performance.now();
const runs: BenchRun[] = [];
let dueMs = 0;
for (const bench of wanted.length > 0 ? wanted : benches) {
  dueMs += plannedMs(bench);
  const passedMs = performance.now() - began;
  // What the ones before it left over, it may use.
  const mayTakeMs = Math.max(plannedMs(bench), dueMs - passedMs);
  const leftMs = wholeMs - passedMs;
  runs.push(
    leftMs < 1_000
      ? { bench, seconds: 0, document: null, problem: 'no time was left for it' }
      : await runBench(bench, Math.min(mayTakeMs, leftMs)),
  );
}
const { isMet, json, markdown } = oneReport(runs, {
  ...{ cores: os.availableParallelism(), node: process.version, at: new Date().toISOString() },
});
const out = path.resolve(process.env['OUT'] ?? 'bench-report');
mkdirSync(out, { recursive: true });
writeFileSync(path.join(out, 'report.json'), json);
writeFileSync(path.join(out, 'report.md'), markdown);
console.log(`\n${markdown}`);
console.log(`in ${out}: report.json, report.md`);
if (!isMet) process.exitCode = 1;
