/**
 * Must show: on each backend whose rollouts are trials 64 rollouts with hostile agents, 48 of them at work at a time on native and 32 on harbor, and half of them cancelled in random phases: receipts
 * within 2 s, nothing of theirs left, the others unaffected. `BACKENDS=native,harbor` chooses. On a machine that does other things too a receipt may be incomplete, and
 * what it did not find gone has `PATIENCE_MS` (else 0) to go.
 */
import { abortPhases, abortRollouts, type AbortReport } from '../chaos/aborted-rollouts.ts';
import { trialBackends, whyNoTrials, type TrialBackend } from '../chaos/trial-servers.ts';

const receiptGoalMs = 2_000;
const patienceMs = Number(process.env['PATIENCE_MS'] ?? '0');
const wanted = (process.env['BACKENDS'] ?? trialBackends.join(',')).split(',');
const [rollouts, cancelled, seed] = (
  [
    ['ROLLOUTS', 64],
    ['CANCELLED', 32],
    ['SEED', 1],
  ] as const
).map(([name, usual]) => Number(process.env[name] ?? usual)) as [number, number, number];

const usualConcurrency: Record<TrialBackend, number> = { native: 48, harbor: 32 };

function tell({ id, phase, stage, ms, before, ...report }: AbortReport): void {
  const ended = `${before} things before; ${report.processesKilled} processes, ${report.modelCallsEnded} model calls ended`;
  console.log(`  ${id} ${phase} (${stage ?? 'none'}): ${Math.round(ms)} ms, ${ended}`);
  for (const problem of report.problems) console.log(`    PROBLEM ${problem}`);
}

async function prove(backend: TrialBackend): Promise<boolean> {
  const concurrency = Number(process.env['CONCURRENCY'] ?? usualConcurrency[backend]);
  console.log(
    `${backend}: ${rollouts} rollouts, ${concurrency} live, ${cancelled} cancelled, seed ${seed}, patience ${patienceMs} ms`,
  );
  const { aborts, survivors, problems } = await abortRollouts({
    ...{ backend, rollouts, cancelled, concurrency, seed, patienceMs, onReceipt: tell },
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
      ? `${backend}: ${aborts.length} cancelled, nothing of theirs is left; ${survivors.length} others ended with their reward`
      : `${backend} FAILED: ${problems.length} problems${isFast ? '' : ', receipts came late'}`,
  );
  return isGood;
}

const chosen = trialBackends.filter((backend) => wanted.includes(backend));
if (chosen.length === 0) throw new Error(`BACKENDS names none of ${trialBackends.join(', ')}`);
for (const backend of chosen) {
  const reason = whyNoTrials(backend);
  if (reason !== null) console.log(`${backend} cannot be shown here: ${reason}`);
  if (reason !== null || !(await prove(backend))) process.exitCode = 1;
}
