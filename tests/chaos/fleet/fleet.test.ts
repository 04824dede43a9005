import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runFleet } from './run-fleet.ts';

describe('the chaos of fleets', () => {
  it('finds one server that is killed to begin nothing twice, and quiet after all is cancelled', async () => {
    const report = await runFleet({
      ...{ workers: 0, nodes: 0, rollouts: 40, live: { blue: 6, red: 6 } },
      ...{ slotsPerHost: 4, maxConcurrent: 4, longestMs: 300, seed: 2 },
      ...{ faults: ['front-end'], restMs: 800, cutMs: 0, endLimitMs: 60_000 },
    });
    assert.deepEqual(report.problems, []);
    assert.ok(report.interrupted > 0, 'the deaths met rollouts');
    assert.ok(report.work.mostGlobal === 4 && report.liveAtCancel === 4);
  });
});
