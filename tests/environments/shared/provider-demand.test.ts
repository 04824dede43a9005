import assert from 'node:assert/strict';
import { test } from 'node:test';
import { meetDemand } from './provider-demand.ts';

const trials = Number(process.env['SLIPWAY_DEMAND_TRIALS'] ?? '100');
const demand = { trials, trialMs: 60_000, perSecond: 4.5, poolSize: 40, rate: 20, isPolite: true };

test(`${trials} trials of a pool never go over the rate of their provider, nearly all find a sandbox ready, and none is left`, async (t) => {
  const { ended, refusals, peakPerSecond, left, use } = await meetDemand(demand);
  t.diagnostic(JSON.stringify({ ended, refusals, peakPerSecond, left, use }));
  assert.deepEqual({ ended, refusals, left }, { ended: trials, refusals: 0, left: 0 });
  assert.ok(peakPerSecond <= 5, `${peakPerSecond} creations within a second`);
  assert.ok(use.hits / (use.hits + use.misses) >= 0.95, JSON.stringify(use));
});

test('without a turn for each creation the same demand is refused by the provider', async () => {
  const { refusals } = await meetDemand({ ...demand, trials: 40, isPolite: false });
  assert.ok(refusals > 0);
});
