/**
 * Must show: the same tests of the server pass with its queue in memory and with a front end and two workers on NATS JetStream. They are the server's suite with its controls, a
 * flood of submissions, agents that do not want to end and are cancelled, and SIGKILL of the server and of workers while rollouts run, with sandboxes and without.
 * `PARTS=suite,flood,abort,death`, `QUEUES=memory,jetstream`, `KILLS` and `NATIVE_KILLS` choose; times are judged on a machine that does nothing else (`TIMES=0` does not judge them).
 */
import { abortRollouts } from '../chaos/aborted-rollouts.ts';
import { runFlood, type FloodOptions } from '../chaos/flood/flood.ts';
import { judgeFlood, quantile } from '../chaos/flood/judge-flood.ts';
import { killServer, type KilledServerOptions, type KillReport } from '../chaos/killed-server.ts';
import { whyNoTrials } from '../chaos/trial-servers.ts';
import { queueKinds, whyNoQueue, type QueueKind } from '../support/rollout-service.ts';
import { runTestFiles } from './run-test-files.ts';

const parts = (process.env['PARTS'] ?? 'suite,flood,abort,death').split(',');
const queues = queueKinds.filter((queue) =>
  (process.env['QUEUES'] ?? queueKinds.join(',')).split(',').includes(queue),
);
const seed = Number(process.env['SEED'] ?? '4');
const isTimed = process.env['TIMES'] !== '0';
const kills = {
  null: Number(process.env['KILLS'] ?? '15'),
  native: Number(process.env['NATIVE_KILLS'] ?? '6'),
};
const receiptMs = 2_000;
const orphanLimitMs = isTimed ? 10_000 : 60_000;
const failures: string[] = [];

function tell(part: string, queue: QueueKind, text: string, problems: readonly string[]): void {
  console.log(`${part}, ${queue}: ${text}: ${problems.length} problems`);
  for (const problem of problems) console.log(`  PROBLEM ${problem}`);
  failures.push(...problems.map((problem) => `${part}, ${queue}: ${problem}`));
}

async function flood(queue: QueueKind): Promise<void> {
  const options: FloodOptions = {
    ...{ queue, submissions: 1_000, overMs: 3_000, maxConcurrent: 32, maxQueueDepth: 128 },
    ...{ backendFlags: ['--backend', 'null'], metadata: { null: { duration_ms: 1_000 } } },
    ...{ warmUps: 64, cancelEvery: 50, pauseMs: 20, leastReads: 1_000, limitMs: 300_000 },
  };
  const evidence = await runFlood(options);
  const { accepted, cancelled, clients, mostExecuting, seconds, cancelMs, healthMs } = evidence;
  const p99 = (values: readonly number[]): string => quantile(values, 0.99).toFixed(0);
  tell(
    'flood',
    queue,
    `${accepted} accepted after ${clients.refusedMs.length} refusals (p99 ${p99(clients.refusedMs)} ms), ${cancelled} cancelled (p99 ${p99(cancelMs)} ms), ${evidence.capacities.length} looks at the health (p99 ${p99(healthMs)} ms), ${mostExecuting} of 32 at a time, in ${seconds.toFixed(0)} s`,
    judgeFlood(evidence, {
      ...{ startTolerance: 0.1, endTolerance: null },
      times: isTimed ? { refusal: 50, control: 100 } : null,
    }),
  );
  const loose = await runFlood({
    ...{ ...options, submissions: 150, overMs: 20, maxConcurrent: 8, maxQueueDepth: 64 },
    ...{ metadata: { null: { duration_ms: 200 } }, warmUps: 0, leastReads: 0, variant: 'loose' },
  });
  const limits = { startTolerance: null, endTolerance: null, times: null };
  const found = judgeFlood(loose, limits).filter((one) => one.includes(' reservations of 72'));
  const missed = found.length === 0 ? ['the control was not found'] : [];
  tell('flood', queue, `control, limits that are looked at late: ${found[0] ?? 'NONE'}`, missed);
}

async function abort(queue: QueueKind): Promise<void> {
  const reason = whyNoTrials('native');
  if (reason !== null) {
    tell('abort', queue, 'not shown', [`it cannot run here: ${reason}`]);
    return;
  }
  const { aborts, survivors, problems } = await abortRollouts({
    ...{ backend: 'native', queue, rollouts: 24, cancelled: 12, concurrency: 16, seed },
    patienceMs: isTimed ? 0 : 20_000,
  });
  const slowest = Math.max(...aborts.map(({ ms }) => ms));
  const before = aborts.reduce((sum, one) => sum + one.before, 0);
  tell(
    'abort',
    queue,
    `${aborts.length} cancelled, receipts after ${slowest.toFixed(0)} ms at most, of ${before} things that were seen before none was left; ${survivors.length} others had their reward`,
    [
      ...problems,
      ...(isTimed && slowest > receiptMs ? ['a receipt came late'] : []),
      ...(before > 0 ? [] : ['nothing was seen before']),
    ],
  );
}

function tellKill({ kind, victim, live, recovered, sandboxes, goneMs }: KillReport): void {
  const gone = sandboxes > 0 ? `; ${sandboxes} sandboxes, gone after ${goneMs.toFixed(0)} ms` : '';
  console.log(`  ${kind}: a ${victim} was killed with ${live} live, ${recovered} taken up${gone}`);
}

async function death(queue: QueueKind): Promise<void> {
  const rows: readonly KilledServerOptions[] = [
    { backend: 'null', kills: kills.null, live: 32, seed },
    {
      ...{ backend: 'native', kills: kills.native, live: 12, seed: seed + 1 },
      kinds: ['creating', 'creating', 'callback', 'timed', 'timed', 'cancel'],
    },
  ];
  for (const row of rows) {
    const without = row.backend === 'native' ? whyNoTrials('native') : null;
    if (without !== null) {
      tell('death', queue, 'native, not shown', [`it cannot run here: ${without}`]);
      continue;
    }
    const report = await killServer({ ...row, queue, orphanLimitMs, onKill: tellKill });
    const { kills, rollouts, cancelled, interrupted, resent, problems } = report;
    const sandboxes = kills.reduce((sum, kill) => sum + kill.sandboxes, 0);
    const slowest = Math.max(...kills.map(({ goneMs }) => goneMs));
    const workers = kills.filter(({ victim }) => victim === 'worker').length;
    tell(
      'death',
      queue,
      `${row.backend}, ${kills.length} kills (${workers} of workers), ${rollouts} rollouts, ${cancelled} cancelled, ${interrupted} ended by a death, ${resent} callbacks sent again; ${sandboxes} sandboxes, gone after ${slowest.toFixed(0)} ms at most`,
      [
        ...problems,
        ...(interrupted > 0 ? [] : ['no death met a rollout']),
        ...(row.backend === 'null' || sandboxes > 0 ? [] : ['no death met a sandbox']),
        ...(queue === 'memory' || workers > 0 ? [] : ['no worker died']),
      ],
    );
  }
}

for (const queue of queues) {
  const reason = whyNoQueue(queue);
  if (reason !== false) failures.push(`${queue} cannot be shown here: ${reason}`);
}
if (parts.includes('suite')) {
  process.env['SLIPWAY_WHOLE_CONFORMANCE'] = '1';
  await runTestFiles(
    'tests/conformance/server.test.ts',
    'tests/conformance/server-controls.test.ts',
  );
  if (process.exitCode === 1) failures.push('the suite');
}
for (const queue of queues) {
  if (whyNoQueue(queue) !== false) continue;
  if (parts.includes('flood')) await flood(queue);
  if (parts.includes('abort')) await abort(queue);
  if (parts.includes('death')) await death(queue);
}
console.log(
  failures.length === 0
    ? `the same tests pass with ${queues.join(' and with ')}`
    : `FAILED: ${failures.join('; ')}`,
);
if (failures.length > 0) process.exitCode = 1;
