/** Must show: SIGKILL of `slipway run` at 20 seeded moments, also between "create sent" and "id known", in both environments. */
import { killRuns } from '../chaos/killed-runs.ts';

const seed = Number(process.env['SEED'] ?? '20');
for (const environment of ['local', 'docker'] as const) {
  console.log(`${environment}, seed ${seed}`);
  const report = await killRuns({
    environment,
    moments: 20,
    seed,
    onMoment: (moment) =>
      console.log(
        `  ${moment.kind.padEnd(9)} killed after ${moment.killedAfterMs.toFixed(0).padStart(5)} ms, ${moment.open} open, gone ${moment.removedAfterMs.toFixed(0).padStart(5)} ms after the next start${moment.problems.map((problem) => `\n    PROBLEM ${problem}`).join('')}`,
      ),
  });
  for (const problem of report.problems) console.log(`  PROBLEM ${problem}`);
  const slowest = Math.max(...report.moments.map((moment) => moment.removedAfterMs));
  console.log(
    report.problems.length === 0
      ? `  ${report.moments.length} kills: every sandbox gone within ${slowest.toFixed(0)} ms of the next start, strangers and the sibling untouched, each trial counted once`
      : '  FAILED',
  );
  if (report.problems.length > 0) process.exitCode = 1;
}
