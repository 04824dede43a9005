/**
 * `npm run chaos`: for `--minutes` (30), in cycles by `--seed` (1): a storm over collector, server, gateway and engine; deaths of a server whose callbacks are refused and lost; deaths of
 * one that has sandboxes in a backend process; an engine that stalls, resets and dies under an agent in a sandbox. Nothing may be lost, left or inexact. Controls first.
 */
import { parseArgs } from 'node:util';
import { messageOf } from '../../../src/core/errors.ts';
import { runFaultSeeds } from '../fault-seeds.ts';
import { killServer } from '../killed-server.ts';
import { whyNoTrials } from '../trial-servers.ts';
import { runStorm, stormKinds } from './run-storm.ts';
import { tamperedStorms } from './tampered-storm.ts';
import { judgeStorm } from './judge-storm.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '30' },
    seed: { type: 'string', default: '1' },
  },
});
const [minutes, firstSeed] = [Number(values.minutes), Number(values.seed)];
if (!(minutes > 0) || !Number.isInteger(firstSeed))
  throw new Error('usage: npm run chaos -- [--minutes N] [--seed N]');

const until = performance.now() + 60_000 * minutes;
const stormMs = 90_000;
const counts = new Map<string, { faults: number; problems: number }>();
const problems: string[] = [];

function count(kind: string, faults: number, found: readonly string[] = []): void {
  const known = counts.get(kind) ?? { faults: 0, problems: 0 };
  counts.set(kind, {
    faults: known.faults + faults,
    problems: known.problems + found.length,
  });
  for (const problem of found) {
    problems.push(`${kind}: ${problem}`);
    console.log(`  PROBLEM ${kind}: ${problem}`);
  }
}

async function storm(seed: number): Promise<void> {
  const leftMs = Math.max(15_000, until - performance.now());
  const report = await runStorm({
    ...{ ms: Math.min(stormMs, leftMs), seed, kinds: stormKinds, pauseMs: 2_000 },
  });
  const { lost, leaked, inexact } = report.verdict;
  for (const [kind, faults] of Object.entries(report.faults)) count(kind, faults);
  const found = [
    ...lost.map((what) => `lost: ${what}`),
    ...leaked.map((what) => `leaked: ${what}`),
    ...inexact.map((what) => `inexact: ${what}`),
    ...report.complaints,
    ...(report.groups === 0 ? ['nothing was collected'] : []),
  ];
  count('storm', 1, found);
  console.log(`storm, seed ${seed}: ${report.groups} groups, ${JSON.stringify(report.faults)}`);
  if (seed !== firstSeed || report.groups === 0) return;
  for (const { what, evidence, breaks } of tamperedStorms(report.evidence)) {
    const isFound = judgeStorm(evidence)[breaks].length > 0;
    console.log(`control, ${what}: ${isFound ? 'found' : 'NOT FOUND'}`);
    if (!isFound) problems.push(`control, ${what}`);
  }
}

async function callbacks(seed: number): Promise<void> {
  const report = await killServer({ kills: 5, live: 24, seed });
  count('server killed, callbacks refused and lost', report.kills.length, report.problems);
  console.log(`callbacks, seed ${seed}: ${report.rollouts} rollouts, ${report.resent} sent again`);
}

async function sandboxes(seed: number): Promise<void> {
  const kinds = ['creating', 'timed'] as const;
  const options = { backend: 'native', kills: 2, live: 4, seed, kinds } as const;
  const report = await killServer({ ...options, orphanLimitMs: 60_000 });
  count('server and backend process killed, with sandboxes', report.kills.length, report.problems);
  console.log(`sandboxes, seed ${seed}: ${report.rollouts} rollouts`);
}

async function engines(seed: number): Promise<void> {
  const report = await runFaultSeeds({ firstSeed: 4 * seed, seeds: 4, concurrency: 2 });
  const left = report.left.map((what) => `left: ${what}`);
  const found = [...report.seeds.flatMap((each) => each.problems), ...left];
  count('engine stalls, resets and dies under a sandbox', report.seeds.length, found);
  console.log(`engine faults, seed ${seed}: ${report.seeds.length} trials`);
}

/** One that could not be carried out is a problem of its own; the others go on. */
async function attempted(part: (seed: number) => Promise<void>, seed: number): Promise<void> {
  try {
    await part(seed);
  } catch (error) {
    count(part.name, 0, [`seed ${seed} was not carried out: ${messageOf(error)}`]);
  }
}

const noTrials = whyNoTrials('native');
if (noTrials !== null) problems.push(`no sandboxes here: ${noTrials}`);
const parts = [storm, callbacks, ...(noTrials === null ? [sandboxes, engines] : [])];
const control = await killServer({ kills: 2, live: 12, seed: 3, isOutboxOff: true });
const missed = control.problems.filter((problem) => /: no (end|completion)/.test(problem));
console.log(`control, a server that forgets its callbacks: ${missed.length} missed`);
if (missed.length === 0) problems.push('control, a server that forgets its callbacks');

for (let turn = 0; turn === 0 || performance.now() < until; turn += 1)
  for (const part of parts)
    if (turn === 0 || performance.now() < until) await attempted(part, firstSeed + turn);

console.log('\nfaults');
for (const [kind, { faults, problems: bad }] of [...counts].sort())
  console.log(`  ${kind.padEnd(52)} ${String(faults).padStart(5)} times, ${bad} problems`);
console.log(
  problems.length === 0
    ? 'nothing was lost, nothing is left, every sample is what the engine sampled'
    : `FAILED: ${problems.length} problems`,
);
if (problems.length > 0) process.exitCode = 1;
