/**
 * Must show: four workers, a front end and three NATS nodes; 2,000 rollouts while workers, the front end and nodes are killed and a worker, the front end and a node
 * are cut off. Each rollout has one end at its controller, none is begun twice, no cap is passed, no agent is at work when its host is said to be lost, all is quiet
 * within 5 s of the cancellation of all. Where hosts take work and cannot say so in time, none is begun twice either; with claims switched off, some are. `ROLLOUTS`, `SEED`, `FAULTS`, `PARTS=proof,late,control` choose.
 */
import { fleetWithoutClaims } from '../chaos/fleet/fleet-stack.ts';
import {
  runFleet,
  type FleetFault,
  type FleetOptions,
  type FleetReport,
} from '../chaos/fleet/run-fleet.ts';

const parts = (process.env['PARTS'] ?? 'proof,late,control').split(',');
const options: FleetOptions = {
  ...{ workers: 4, nodes: 3, live: { blue: 20, red: 12 }, slotsPerHost: 4, maxConcurrent: 12 },
  rollouts: Number(process.env['ROLLOUTS'] ?? '2000'),
  ...{ longestMs: 600, seed: Number(process.env['SEED'] ?? '1'), restMs: 3_000, cutMs: 9_000 },
  faults: (process.env['FAULTS']?.split(',') as FleetFault[] | undefined) ?? [
    ...(['worker', 'front-end', 'cut-worker', 'worker', 'node', 'worker'] as const),
    ...(['cut-front-end', 'worker', 'cut-node', 'front-end'] as const),
  ],
  queueSettings: 'lease_sec = 5',
  endLimitMs: 240_000,
  onFault: (what) => console.log(`  ${what}`),
};
/** Held for longer than work waits for an acknowledgement, and shorter than a lease: who has taken it says so when another has it too. */
const late: FleetOptions = {
  ...{ ...options, rollouts: Math.min(160, options.rollouts), longestMs: 10_000 },
  ...{ faults: ['hold-worker'], restMs: 1_000, cutMs: 6_000, queueSettings: 'lease_sec = 20' },
};
const isDouble = (problem: string): boolean => / begun \d+ times/.test(problem);
const failures: string[] = [];
let startedMs = 0;

function tell(what: string, report: FleetReport): void {
  const { work } = report;
  console.log(
    `${what}: ${report.rollouts} rollouts in ${((performance.now() - startedMs) / 1_000).toFixed(0)} s, ${report.cancelled} cancelled, ${report.interrupted} ended by a death, ${report.resent} callbacks sent again; faults ${JSON.stringify(report.faults)}`,
  );
  console.log(
    `  ${work.begun} begun; at once at most ${work.mostGlobal} of ${options.maxConcurrent}, on a host ${work.mostOnHost} of ${options.slotsPerHost}; quiet ${report.quietMs.toFixed(0)} ms after ${report.liveAtCancel} were cancelled; ${report.problems.length} problems`,
  );
}

async function sound(what: string, how: FleetOptions): Promise<void> {
  startedMs = performance.now();
  const report = await runFleet(how);
  tell(what, report);
  for (const problem of report.problems) console.log(`  PROBLEM ${problem}`);
  failures.push(...report.problems);
  const without = how.faults.filter((fault) => (report.faults[fault] ?? 0) === 0);
  if (without.length > 0) failures.push(`${what}: nothing of ${without.join(', ')} happened`);
}

if (parts.includes('proof')) await sound('killed and cut off', options);
if (parts.includes('late')) await sound('taken in silence', late);
if (parts.includes('control')) {
  startedMs = performance.now();
  const report = await runFleet({ ...late, programs: fleetWithoutClaims });
  tell('control, without claims', report);
  const doubles = report.problems.filter(isDouble);
  console.log(`  ${doubles.length} begun more than once, as ${doubles[0] ?? 'NONE'}`);
  if (doubles.length === 0) failures.push('the control found nothing');
}
console.log(
  failures.length === 0
    ? 'one end each, none begun twice'
    : `FAILED: ${failures.length} problems, as ${failures[0]}`,
);
if (failures.length > 0) process.exitCode = 1;
