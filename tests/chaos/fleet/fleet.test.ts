import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { whyNoNats } from '../../support/nats/nats-cluster.ts';
import { runFleet } from './run-fleet.ts';

describe('the chaos of fleets', { skip: whyNoNats }, () => {
  it('leaves every rollout one end and none begun twice, and is quiet after all is cancelled', async () => {
    const report = await runFleet({
      ...{ workers: 2, nodes: 1, rollouts: 50, live: { blue: 6, red: 6 } },
      ...{ slotsPerHost: 3, maxConcurrent: 4, longestMs: 400, seed: 2 },
      ...{ faults: ['worker', 'front-end'], mostFaults: 2, restMs: 1_500, cutMs: 0 },
      ...{ queueSettings: 'lease_sec = 2', endLimitMs: 60_000 },
    });
    assert.deepEqual(report.problems, []);
    assert.ok(report.interrupted > 0, 'the deaths met rollouts');
    assert.ok(report.work.mostGlobal === 4 && report.liveAtCancel === 4);
  });
});
