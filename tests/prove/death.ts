/**
 * Must show: SIGKILL of the server at seeded moments with 32 rollouts live, on each backend; each has one end, the same bytes again, nothing lost, and where
 * rollouts have sandboxes all 32 run and none is left 10 s after the next start. Ten thousand stored rollouts are taken up in under 3 s. With the outbox off the
 * proof fails. `BACKENDS=null,native,harbor,many,control` chooses.
 */
import { killServer, type KilledBackend, type KillReport } from '../chaos/killed-server.ts';
import { recoverMany } from '../chaos/many-recovered.ts';
import { whyNoTrials } from '../chaos/trial-servers.ts';

const wanted = (process.env['BACKENDS'] ?? 'null,native,harbor,many,control').split(',');
const seed = Number(process.env['SEED'] ?? '4');
/** A life with sandboxes takes many times as long as one without. */
const kills: Record<KilledBackend, number> = {
  null: Number(process.env['KILLS'] ?? '80'),
  native: Number(process.env['NATIVE_KILLS'] ?? '20'),
  harbor: Number(process.env['HARBOR_KILLS'] ?? '15'),
};
const live = 32;
/** On a machine that does other things too they have longer. */
const orphanLimitMs = Number(process.env['ORPHAN_LIMIT_MS'] ?? '10000');
const many = 10_000;
const recoveryLimitMs = 3_000;
const failures: string[] = [];
let done = 0;

function tell(kill: KillReport, hasSandboxes: boolean): void {
  const orphans = hasSandboxes
    ? `; ${kill.sandboxes} sandboxes (${kill.inFlight} being created), gone ${kill.goneMs.toFixed(0)} ms after the next start`
    : '';
  console.log(
    `  ${kill.kind.padEnd(8)} killed after ${kill.afterMs.toFixed(0).padStart(5)} ms with ${kill.live} live; behind the last commit: ${kill.garbage ?? 'no log'}; ready in ${kill.readyMs.toFixed(0)} ms with ${kill.recovered} taken up${orphans}`,
  );
}

async function prove(backend: KilledBackend): Promise<void> {
  const reason = backend === 'null' ? null : whyNoTrials(backend);
  if (reason !== null) {
    failures.push(`${backend} cannot be shown here: ${reason}`);
    return;
  }
  console.log(`${backend} backend, ${kills[backend]} kills with ${live} live, seed ${seed}`);
  const report = await killServer({
    ...{ backend, kills: kills[backend], live, orphanLimitMs },
    seed: backend === 'null' ? seed : seed + 1,
    ...(backend !== 'null' && { kinds: ['creating', 'timed', 'callback', 'creating', 'cancel'] }),
    onKill: (kill) => tell(kill, backend !== 'null'),
  });
  for (const problem of report.problems) console.log(`  PROBLEM ${problem}`);
  const orphans = report.kills.reduce((sum, { sandboxes }) => sum + sandboxes, 0);
  const slowest = Math.max(0, ...report.kills.map(({ goneMs }) => goneMs));
  console.log(
    `  ${report.rollouts} rollouts, ${report.cancelled} cancelled, ${report.interrupted} ended by a death, ${report.resent} callbacks sent again: ${report.problems.length} problems`,
  );
  if (backend !== 'null') {
    console.log(
      `  ${orphans} orphaned sandboxes, gone after ${slowest.toFixed(0)} ms at most, limit ${orphanLimitMs} ms`,
    );
    if (orphans === 0) failures.push(`${backend}: no death met a sandbox`);
  }
  failures.push(...report.problems.map((problem) => `${backend}: ${problem}`));
  done += report.kills.length;
}

for (const backend of ['null', 'native', 'harbor'] as const)
  if (wanted.includes(backend)) await prove(backend);

if (wanted.includes('many')) {
  const { recovered, readyMs, emptyReadyMs, states } = await recoverMany(many);
  const recoveryMs = readyMs - emptyReadyMs;
  console.log(
    `${recovered} stored rollouts: ready after ${readyMs.toFixed(0)} ms, without them after ${emptyReadyMs.toFixed(0)} ms; then ${JSON.stringify(states)}`,
  );
  if (recovered !== many) failures.push(`${recovered} rollouts were taken up`);
  if (recoveryMs > recoveryLimitMs) failures.push(`recovery took ${recoveryMs.toFixed(0)} ms`);
  if (states['failure'] !== many / 100) failures.push('begun rollouts did not end as failures');
}

if (wanted.includes('control')) {
  const control = await killServer({ kills: 5, live, seed, isOutboxOff: true });
  const missed = control.problems.filter((problem) => /: no (end|completion)/.test(problem));
  console.log(
    `control, without the outbox: ${missed.length} ends or completions missed, as ${missed[0] ?? 'NONE'}`,
  );
  if (missed.length === 0) failures.push('the control found nothing');
}

console.log(
  failures.length === 0
    ? `${done} kills: every accepted rollout had one end and no two different ones, no sandbox stayed`
    : `FAILED: ${failures.join('; ')}`,
);
if (failures.length > 0) process.exitCode = 1;
