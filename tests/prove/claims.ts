/**
 * What at-most-once over several hosts rests on: eight claimers race for thousands of keys on a cluster of three NATS nodes of which one after the other is killed, while
 * connections break. Each key has one winner; where claimers look first and write then, as the control does, some have two. `KEYS` and `SEED` choose.
 */
import { raceForClaims, type ClaimRaceOptions } from '../chaos/fleet/claim-race.ts';

const race: ClaimRaceOptions = {
  ...{ nodes: 3, claimers: 8, way: 'compare-and-set', faults: 40, restMs: 1_500 },
  keys: Number(process.env['KEYS'] ?? '3000'),
  seed: Number(process.env['SEED'] ?? '1'),
  limitMs: 500_000,
};
const failures: string[] = [];

const report = await raceForClaims(race);
console.log(
  `${race.keys} keys, ${race.claimers} claimers, seed ${race.seed}: ${report.kills} nodes killed, ${report.cuts} times connections broken, ${report.unanswered} claims without an answer, ${report.readBack} of them won: ${report.problems.length} problems`,
);
for (const problem of report.problems) console.log(`  PROBLEM ${problem}`);
failures.push(...report.problems);
if (report.kills === 0 || report.readBack === 0) failures.push('nothing went wrong on the way');

const control = await raceForClaims({ ...race, keys: 100, faults: 0, way: 'look-then-write' });
console.log(
  `control, without compare-and-set: ${control.problems.length} of 100 keys, as ${control.problems[0] ?? 'NONE'}`,
);
if (control.problems.length === 0) failures.push('the control found nothing');

console.log(failures.length === 0 ? 'every key had one winner' : `FAILED: ${failures.join('; ')}`);
if (failures.length > 0) process.exitCode = 1;
