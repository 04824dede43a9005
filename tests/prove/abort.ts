/** Must show: 64 live rollouts with hostile agents, 32 cancelled in random phases: receipts within 2 s, nothing of theirs left, the others unaffected. */
import { abortPhases, abortRollouts } from '../chaos/aborted-rollouts.ts';

const receiptGoalMs = 2_000;
const { aborts, survivors, problems } = await abortRollouts({
  rollouts: Number(process.env['ROLLOUTS'] ?? '64'),
  cancelled: Number(process.env['CANCELLED'] ?? '32'),
  concurrency: Number(process.env['CONCURRENCY'] ?? '48'),
  seed: Number(process.env['SEED'] ?? '1'),
  patienceMs: 0,
  onReceipt: ({
    id,
    phase,
    stage,
    ms,
    before,
    processesKilled,
    modelCallsEnded,
    problems: own,
  }) => {
    const ended = `${before} things before; ${processesKilled} processes, ${modelCallsEnded} model calls ended`;
    console.log(`  ${id} ${phase} (${stage ?? 'none'}): ${Math.round(ms)} ms, ${ended}`);
    for (const problem of own) console.log(`    PROBLEM ${problem}`);
  },
});
const times = aborts.map(({ ms }) => ms).sort((a, b) => a - b);
const p99 = times[Math.ceil(times.length * 0.99) - 1] ?? Infinity;
for (const phase of abortPhases) {
  const own = aborts.filter((abort) => abort.phase === phase);
  const slowest = Math.max(0, ...own.map(({ ms }) => ms));
  console.log(
    `${phase}: ${own.length} cancelled, the slowest receipt after ${Math.round(slowest)} ms`,
  );
}
const isFast = p99 <= receiptGoalMs;
console.log(
  `receipts: p50 ${Math.round(times[Math.floor(times.length / 2)] ?? 0)} ms, p99 ${Math.round(p99)} ms, goal ${receiptGoalMs} ms`,
);
for (const problem of problems) console.log(`  PROBLEM ${problem}`);
const seen = aborts.reduce((sum, { before }) => sum + before, 0);
console.log(`control: the same looks found ${seen} processes, sandboxes and calls before`);
const isGood = problems.length === 0 && isFast && seen > 0;
console.log(
  isGood
    ? `${aborts.length} cancelled, nothing of theirs is left; ${survivors.length} others ended with their reward`
    : `FAILED: ${problems.length} problems${isFast ? '' : ', receipts came late'}`,
);
if (!isGood) process.exitCode = 1;
