/**
 * Must show: SIGKILL of the server at 100 seeded moments with 32 rollouts live; each has one end, the same bytes again, nothing lost, no sandbox left. Ten thousand
 * stored rollouts are taken up in under 3 s. With the outbox off the proof fails.
 */
import { killServer, type KilledServerOptions } from '../chaos/killed-server.ts';
import { recoverMany } from '../chaos/many-recovered.ts';

const seed = Number(process.env['SEED'] ?? '4');
const nullKills = Number(process.env['KILLS'] ?? '80');
const nativeKills = Number(process.env['NATIVE_KILLS'] ?? '20');
const many = 10_000;
const recoveryLimitMs = 3_000;
const failures: string[] = [];

async function prove(options: KilledServerOptions): Promise<void> {
  const { backend, kills, live } = options;
  console.log(`${backend ?? 'null'} backend, ${kills} kills with ${live} live, seed ${seed}`);
  const report = await killServer({
    ...options,
    onKill: (kill) => {
      const orphans =
        backend === 'native'
          ? `; ${kill.sandboxes} sandboxes (${kill.inFlight} being created), gone ${kill.goneMs.toFixed(0)} ms after the next start`
          : '';
      console.log(
        `  ${kill.kind.padEnd(8)} killed after ${kill.afterMs.toFixed(0).padStart(5)} ms with ${kill.live} live; behind the last commit: ${kill.garbage ?? 'no log'}; ready in ${kill.readyMs.toFixed(0)} ms with ${kill.recovered} taken up${orphans}`,
      );
    },
  });
  for (const problem of report.problems) console.log(`  PROBLEM ${problem}`);
  console.log(
    `  ${report.rollouts} rollouts, ${report.cancelled} cancelled, ${report.interrupted} ended by a death, ${report.resent} callbacks sent again: ${report.problems.length} problems`,
  );
  failures.push(...report.problems);
}

await prove({ kills: nullKills, live: 32, seed });
await prove({
  ...{ backend: 'native', kills: nativeKills, live: 32, seed: seed + 1 },
  kinds: ['creating', 'timed', 'callback', 'creating', 'cancel'],
});

const { recovered, readyMs, emptyReadyMs, states } = await recoverMany(many);
const recoveryMs = readyMs - emptyReadyMs;
console.log(
  `${recovered} stored rollouts: ready after ${readyMs.toFixed(0)} ms, without them after ${emptyReadyMs.toFixed(0)} ms; then ${JSON.stringify(states)}`,
);
if (recovered !== many) failures.push(`${recovered} rollouts were taken up`);
if (recoveryMs > recoveryLimitMs) failures.push(`recovery took ${recoveryMs.toFixed(0)} ms`);
if (states['failure'] !== many / 100) failures.push('begun rollouts did not end as failures');

const control = await killServer({ kills: 5, live: 32, seed, isOutboxOff: true });
const missed = control.problems.filter((problem) => /: no (end|completion)/.test(problem));
console.log(
  `control, without the outbox: ${missed.length} ends or completions missed, as ${missed[0] ?? 'NONE'}`,
);
if (missed.length === 0) failures.push('the control found nothing');

console.log(
  failures.length === 0
    ? `${nullKills + nativeKills} kills: every accepted rollout had one end and no two different ones, no sandbox stayed`
    : `FAILED: ${failures.join('; ')}`,
);
if (failures.length > 0) process.exitCode = 1;
