/** Must show: 200 seeds of faults in the engine; each trial ends typed and in time, none hangs, no reward is made up, nothing is left. */
import { planText } from '../chaos/fault-plan.ts';
import { runFaultSeeds } from '../chaos/fault-seeds.ts';
import { judge } from '../chaos/fault-verdict.ts';
import { tampered } from '../chaos/tampered-evidence.ts';

const count = Number(process.env['SEEDS'] ?? '200');
const { calm, seeds, left } = await runFaultSeeds({
  firstSeed: Number(process.env['SEED'] ?? '1'),
  seeds: count,
  concurrency: Number(process.env['CONCURRENCY'] ?? '6'),
  onSeed: ({ plan, code, rewards, turns, agentMs, problems }) => {
    const ending = `${code ?? 'no failure'}, reward ${String(rewards?.['reward'] ?? 'none')}`;
    console.log(
      `  seed ${plan.seed}: ${planText(plan)} → ${ending}, ${turns} turns in ${Math.round(agentMs)} ms`,
    );
    for (const problem of problems) console.log(`    PROBLEM ${problem}`);
  },
});

const endings = Map.groupBy(seeds, ({ code }) => code ?? 'no failure');
for (const [code, members] of [...endings].sort((a, b) => b[1].length - a[1].length)) {
  const verdicts = members.filter(({ rewards }) => rewards !== null).length;
  console.log(`${code}: ${members.length} trials, ${verdicts} with a verdict`);
}
const problems = [
  ...seeds.flatMap((seed) => seed.problems),
  ...left.map((what) => `left: ${what}`),
];
for (const what of left) console.log(`  PROBLEM left: ${what}`);

if (calm.evidence === null || calm.rewards?.['reward'] !== 1 || calm.problems.length > 0)
  problems.push(`without faults: ${calm.code ?? 'no failure'} ${calm.problems.join(', ')}`);
else
  for (const [what, evidence] of tampered(calm.evidence)) {
    const isFound = judge(evidence).length > 0;
    console.log(`control, ${what}: ${isFound ? 'found' : 'NOT FOUND'}`);
    if (!isFound) problems.push(what);
  }
console.log(
  problems.length === 0 && seeds.length === count
    ? `${count} seeds: each ended typed and in time, no reward was made up, nothing is left`
    : `FAILED: ${problems.length} problems`,
);
if (problems.length > 0 || seeds.length !== count) process.exitCode = 1;
