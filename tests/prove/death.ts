/** Must show: SIGKILL of the server at 100 seeded moments with 32 rollouts live; one end each, the same bytes again, nothing lost. With its control. */
import { killServer } from '../chaos/killed-server.ts';

const kills = Number(process.env['KILLS'] ?? '100');
const seed = Number(process.env['SEED'] ?? '4');
const live = 32;
let isFailed = false;

console.log(`${kills} kills with ${live} rollouts live, seed ${seed}`);
const report = await killServer({
  ...{ kills, live, seed },
  onKill: ({ kind, afterMs, live: open, garbage, readyMs, recovered }) =>
    console.log(
      `  ${kind.padEnd(8)} killed after ${afterMs.toFixed(0).padStart(5)} ms with ${open} live; behind the last commit: ${garbage ?? 'no log'}; ready again in ${readyMs.toFixed(0)} ms with ${recovered} taken up`,
    ),
});
for (const problem of report.problems) console.log(`  PROBLEM ${problem}`);
console.log(
  `  ${report.rollouts} rollouts, ${report.cancelled} cancelled, ${report.interrupted} ended by a death, ${report.resent} callbacks sent again`,
);
if (report.problems.length > 0) isFailed = true;

const control = await killServer({ kills: 5, live, seed, isOutboxOff: true });
console.log(
  `control, without the outbox: ${control.problems.length} problems found, as ${control.problems[0] ?? 'NONE'}`,
);
if (control.problems.length === 0) isFailed = true;
console.log(isFailed ? 'FAILED' : 'every accepted rollout had one end, and no two different ones');
if (isFailed) process.exitCode = 1;
