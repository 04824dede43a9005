/** Must show: 50,000 rollouts through the collector; memory grows by less than 1 MB per 1,000 after a warm-up. Control: an observer that keeps what it hears. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { growth, runMemory, type MemoryRun } from '../collector/memory-run.ts';

setFlagsFromString('--expose-gc');
globalThis.gc = runInNewContext('gc') as typeof globalThis.gc;

const rollouts = Number(process.env['ROLLOUTS'] ?? '50000');
const limit = 1_000_000;

/** The first fifth is the warm-up. */
function warm(run: MemoryRun): MemoryRun {
  return { ...run, points: run.points.slice(Math.floor(run.points.length / 5)) };
}

const began = performance.now();
const run = await runMemory({ rollouts, every: rollouts / 25 });
const grown = growth(warm(run));
const [first] = run.points;
const last = run.points.at(-1);
console.log(
  `${run.rollouts} rollouts in ${((performance.now() - began) / 1_000).toFixed()} s: heap ${mb(first?.bytes)} at first, ${mb(last?.bytes)} at last, ${(grown / 1_000).toFixed(1)} kB per 1,000`,
);
const kept: unknown[] = [];
const control = await runMemory({ rollouts: rollouts / 10, every: rollouts / 100 }, (event) => {
  kept.push(event);
});
const leaked = growth(control);
console.log(
  `control, an observer that keeps every event: ${(leaked / 1_000).toFixed(1)} kB per 1,000`,
);
const isFailed = grown >= limit || leaked < limit || kept.length === 0;
console.log(isFailed ? 'FAILED' : 'memory stays flat');
if (isFailed) process.exitCode = 1;

function mb(bytes = 0): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
