/** Must show: 5,000 budgets keep every rule, and 300 real overruns are ended in time, typed, with their trajectory and verdict, never beside a verifier. */
import { loadTask } from '../../src/tasks/load-task.ts';
import { never } from '../../src/core/linked-abort.ts';
import {
  localKinds,
  nativeKinds,
  overrunProblems,
  runOverruns,
} from '../chaos/deadlines/overruns.ts';
import { budgetProblems, rightRules } from '../chaos/deadlines/rollout-budgets.ts';
import { taskFolder } from '../fakes/task-folder.ts';
import { realProviders } from '../support/real-providers.ts';
import { answerTask } from '../trial/trial-bench.ts';

const budgets = Number(process.env['BUDGETS'] ?? '5000');
const count = Number(process.env['OVERRUNS'] ?? '300');
const kind = process.env['ENVIRONMENT'] ?? 'local';
const goalMs = 1_000;
const problems: string[] = [];

{
  await using folder = await taskFolder(answerTask);
  const task = await loadTask({ dir: folder.dir, signal: never, isVerificationEnabled: true });
  const seeds = Array.from({ length: budgets }, (_, seed) => seed);
  for (const seed of seeds)
    for (const problem of budgetProblems(seed, task)) problems.push(`budget ${seed}: ${problem}`);
  console.log(`${budgets} budgets: ${problems.length} problems`);
  for (const [what, rules] of [
    ['queue time charged to the agent of a trial', { ...rightRules, chargedShare: 1 }],
    ['queue time not charged to a workflow', { ...rightRules, chargesLocally: false }],
  ] as const) {
    const found = seeds.filter((seed) => budgetProblems(seed, task, rules).length > 0).length;
    console.log(`control, ${what}: found in ${found} budgets`);
    if (found === 0) problems.push(`control not found: ${what}`);
  }
}

const real = realProviders().find((one) => one.kind === kind);
if (real?.skip !== null) {
  console.log(`FAILED: no environment ${kind} here: ${real?.skip ?? 'unknown'}`);
  process.exit(1);
}
const { provider, close } = await real.open();
await provider.preflight(never);
const overruns = await runOverruns({
  ...{ provider, count, kinds: [...nativeKinds, ...localKinds] },
  ...{ concurrency: Number(process.env['CONCURRENCY'] ?? '4'), limitMs: 1_500 },
  onOverrun: (overrun) => {
    const found = overrunProblems(overrun);
    console.log(`  ${overrun.kind}: ${Math.round(overrun.overMs)} ms over its limit`);
    for (const problem of found) console.log(`    PROBLEM ${problem}`);
    problems.push(...found);
  },
});
await close();

const over = overruns.map(({ overMs }) => overMs).sort((a, b) => a - b);
const at = (share: number): number => Math.round(over[Math.ceil(over.length * share) - 1] ?? NaN);
console.log(
  `overrun: median ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms; goal p99 < ${goalMs} ms`,
);
const isMet = at(0.99) < goalMs && overruns.length === count && problems.length === 0;
console.log(isMet ? `${count} overruns on ${kind}: met` : `FAILED: ${problems.length} problems`);
if (!isMet) process.exitCode = 1;
