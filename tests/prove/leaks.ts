/** Must show: bundled tasks × 4 attempts at concurrency 8, both environments: every reward right, nothing left on the machine. */
import { runLeavesNothing } from '../chaos/run-leaves-nothing.ts';

for (const environment of ['local', 'docker'] as const) {
  const report = await runLeavesNothing({ environment, attempts: 4, concurrency: 8, tasks: null });
  console.log(`${environment}: ${report.trials} trials`);
  console.log(`  before: ${report.before}`);
  console.log(`  after:  ${report.after}`);
  for (const problem of report.problems) console.log(`  PROBLEM ${problem}`);
  console.log(`  ${report.problems.length === 0 ? 'every reward right, nothing left' : 'FAILED'}`);
  if (report.problems.length > 0) process.exitCode = 1;
}
