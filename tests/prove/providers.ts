/**
 * Must show: the environment suite for each provider on the fake of its service; 500 trials on each fake over its real wire, with a pool and without; one build for
 * 200 who ask at once; SIGKILL of a run with a full pool and a restart. Each with its control. `PARTS=conformance,demand,builds,kills,controls` chooses.
 */
import { askForOneImage } from '../chaos/providers/one-build.ts';
import { createsPerSecond, meetDemand, type DemandReport } from '../chaos/providers/demand.ts';
import { remoteKinds, type RemoteKind } from '../chaos/providers/fake-services.ts';
import { killPools } from '../chaos/providers/killed-pool.ts';
import { run } from './run-test-files.ts';

const wanted = (process.env['PARTS'] ?? 'conformance,demand,builds,kills,controls').split(',');
const demand = { trials: 500, trialMs: 60_000, perSecond: 4.5, rate: 2 };
const poolSize = 40;
/** Fewer than the demand would have without a pool. */
const maxLive = 250;
/** A part in a hundred: what was admitted in time may arrive a few milliseconds late, which the fast clock multiplies. */
const refusedShare = 0.01;
const killed = {
  ...{ kills: 4, running: 8, poolSize: 12, createsPerSecond, createMs: 2_000 },
  limitMs: Number(process.env['ORPHAN_LIMIT_MS'] ?? '15000'),
};
const failures: string[] = [];

function check(isSo: boolean, problem: string): void {
  if (isSo) return;
  failures.push(problem);
  console.log(`  PROBLEM ${problem}`);
}

function told(report: DemandReport): string {
  const { ended, created, refused, peakPerSecond, failedCreates, lostAnswers, use } = report;
  const share = (100 * use.hits) / Math.max(1, use.hits + use.misses);
  return [
    `${ended} trials ended, ${created} creations taken, ${refused} refused, ${peakPerSecond} within a second at most`,
    `${report.peakLive} sandboxes at once, ${report.refusedLive} refused as too many`,
    `${failedCreates} failed, ${lostAnswers} answers lost, ${report.left.length} sandboxes and ${report.open} entries left`,
    `${share.toFixed(1)} % found one ready; ${report.fakeSec} s of the fake's time`,
  ].join('; ');
}

async function proveDemand(kind: RemoteKind, size: number): Promise<void> {
  const limit = size === 0 ? { maxLive } : {};
  const report = await meetDemand({ kind, ...demand, poolSize: size, ...limit });
  const name = `${kind}, ${size === 0 ? `no pool, ${maxLive} sandboxes at once` : `a pool of ${size}`}`;
  console.log(`${name}: ${told(report)}`);
  const { ended, created, refused, peakPerSecond, left, open, use } = report;
  check(ended === demand.trials, `${name}: ${ended} trials ended`);
  check(peakPerSecond <= createsPerSecond, `${name}: ${peakPerSecond} creations within a second`);
  check(refused <= refusedShare * created, `${name}: ${refused} creations were refused`);
  check(report.refusedLive === 0, `${name}: ${report.refusedLive} over the number of sandboxes`);
  check(left.length + open === 0, `${name}: ${left.length} sandboxes and ${open} entries are left`);
  if (size > 0)
    check(use.hits >= 0.95 * (use.hits + use.misses), `${name}: ${use.hits} found one ready`);
}

async function proveOneBuild(): Promise<void> {
  const report = await askForOneImage({ asks: 200, rate: 4, isPolite: true });
  const { builds, started, refused, left } = report;
  console.log(
    `daytona, 200 asks for one Dockerfile from two processes: ${builds} build, ${started} started, ${refused} refused, ${left} left`,
  );
  check(builds === 1, `${builds} builds`);
  check(started === 200 && left === 0, `${started} started, ${left} left`);
  check(refused <= refusedShare * 200, `${refused} creations were refused behind the build`);
}

async function proveKills(kind: RemoteKind): Promise<void> {
  const report = await killPools({
    ...{ kind, ...killed },
    onKill: ({ moment, sandboxes, creating, agents, goneMs }) =>
      console.log(
        `${kind}, killed with the pool ${moment}: ${sandboxes} sandboxes, ${creating} of them being made, ${agents} agents at work; each had a live owner ${goneMs.toFixed(0)} ms after the next start`,
      ),
  });
  for (const problem of report.problems) check(false, `${kind}: ${problem}`);
}

async function proveControls(): Promise<void> {
  const impolite = await meetDemand({
    ...{ kind: 'daytona', trials: 60, trialMs: 0, perSecond: 20, poolSize: 0, rate: 4 },
    isPolite: false,
  });
  console.log(`control, nobody waits for a turn: ${told(impolite)}`);
  check(impolite.refused > 100, 'control: the service refused too little');
  const behind = await askForOneImage({ asks: 60, rate: 4, isPolite: false });
  console.log(`control, the same behind a build: ${behind.refused} refused`);
  check(behind.refused > 100, 'control: the service refused too little behind the build');
  const lost = await killPools({
    ...{ kind: 'kubernetes', ...killed, kills: 1, isJournalLost: true },
  });
  console.log(`control, the next start knows nothing of the dead run: ${lost.problems.join()}`);
  check(lost.problems.length > 0, 'control: sandboxes without an owner were not seen');
}

if (wanted.includes('conformance')) {
  process.env['SLIPWAY_WHOLE_CONFORMANCE'] = '1';
  const names = ['daytona', 'skypilot', 'kubernetes', 'daytona-backend', 'skypilot-backend'];
  await run(process.execPath, [
    // Their cases wait for the most part.
    ...['--test', '--test-concurrency=2', '--test-reporter=spec'],
    ...names.map((name) => `tests/conformance/${name}.test.ts`),
  ]);
}
if (wanted.includes('demand'))
  for (const size of [poolSize, 0])
    await Promise.all(remoteKinds.map((kind) => proveDemand(kind, size)));
if (wanted.includes('builds')) await proveOneBuild();
for (const kind of remoteKinds) if (wanted.includes('kills')) await proveKills(kind);
if (wanted.includes('controls')) await proveControls();
console.log(failures.length === 0 ? 'shown' : `FAILED: ${failures.join('; ')}`);
if (failures.length > 0) process.exitCode = 1;
