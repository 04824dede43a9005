import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { whyNoNats } from '../../support/nats/nats-cluster.ts';
import { raceForClaims, type ClaimRaceOptions } from './claim-race.ts';

const race: ClaimRaceOptions = {
  ...{ nodes: 1, claimers: 4, keys: 300, way: 'compare-and-set', faults: 6, restMs: 50 },
  ...{ seed: 6, limitMs: 60_000 },
};

describe('a race for claims on NATS', { skip: whyNoNats }, () => {
  it('has one winner for each, over deaths of the server and broken connections', async () => {
    const report = await raceForClaims(race);
    assert.deepEqual(report.problems, []);
    // Whether a claim was under way at one of them is a matter of moments: `npm run prove -- claims` sees that.
    assert.ok(report.kills > 0 && report.cuts > 0);
  });

  it('control: has two for some where claimers look first and write then', async () => {
    const report = await raceForClaims({ ...race, keys: 40, faults: 0, way: 'look-then-write' });
    assert.match(report.problems.join('\n'), /won by c\d and c\d/);
  });
});
