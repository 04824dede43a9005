import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createsPerSecond, meetDemand } from './demand.ts';
import { remoteKinds } from './fake-services.ts';
import { askForOneImage } from './one-build.ts';

const demand = { trials: 40, trialMs: 6_000, perSecond: 4.5, poolSize: 12, rate: 5 };
/** On a busy machine what was admitted in time arrives some milliseconds late, which the clock multiplies. In the controls more are refused than that. */
const refusedAtMost = 6;
const refusedInControl = 2 * refusedAtMost;

describe('trials that ask a provider for their sandboxes', { concurrency: true }, () => {
  for (const kind of remoteKinds)
    test(`of a pool find one ready on ${kind}, keep to its rate, and leave none`, async (t) => {
      const report = await meetDemand({ kind, ...demand });
      t.diagnostic(JSON.stringify(report));
      const { ended, refused, peakPerSecond, left, open, use } = report;
      assert.deepEqual({ ended, left, open }, { ended: demand.trials, left: [], open: 0 });
      assert.ok(refused <= refusedAtMost, `${refused} refused`);
      assert.ok(peakPerSecond <= createsPerSecond);
      assert.ok(use.hits >= 0.95 * (use.hits + use.misses), JSON.stringify(use));
    });
});

describe('many who ask at once', { concurrency: true }, () => {
  test('have one Dockerfile built once, and their sandboxes made at the rate behind it', async () => {
    const report = await askForOneImage({ asks: 30, rate: 10, isPolite: true });
    const { builds, started, left } = report;
    assert.deepEqual({ builds, started, left }, { builds: 1, started: 30, left: 0 });
    assert.ok(report.refused <= refusedAtMost, `${report.refused} refused`);
  });

  test('control: without turns they are refused behind the build', async () => {
    const report = await askForOneImage({ asks: 30, rate: 10, isPolite: false });
    assert.ok(report.refused > refusedInControl, JSON.stringify(report));
    assert.equal(report.left, 0);
  });

  test('control: without a turn for each creation the provider refuses, and without a pool nobody finds one ready', async () => {
    const report = await meetDemand({
      ...{ kind: 'daytona', ...demand, trialMs: 0, perSecond: 20, poolSize: 0, isPolite: false },
    });
    assert.ok(report.refused > refusedInControl, JSON.stringify(report));
    assert.equal(report.use.hits, 0);
    assert.deepEqual(report.left, []);
  });
});
