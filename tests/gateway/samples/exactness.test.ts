import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runGatewayCorpus } from '../capture/exact-corpus.ts';

test(
  'what samples say of every call is what the engine was given and sampled, in every dialect; a flipped id is found',
  { timeout: 120_000 },
  async () => {
    const report = await runGatewayCorpus({
      ...{ rollouts: 6, mostTurns: 4, seed: 7, concurrency: 3, readsSamples: true },
    });
    assert.deepEqual(report.problems, []);
    assert.ok(Object.values(report.calls).every((count) => count > 0));
  },
);
