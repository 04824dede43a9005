import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runFlood, type FloodOptions } from './flood.ts';
import { judgeFlood } from './judge-flood.ts';

const small: FloodOptions = {
  ...{ submissions: 300, overMs: 300, maxConcurrent: 8, maxQueueDepth: 192 },
  backendFlags: ['--backend', 'null'],
  metadata: { null: { duration_ms: 60 } },
  ...{ warmUps: 2, cancelEvery: 20, pauseMs: 5, leastReads: 100, limitMs: 90_000 },
};

describe('a flood of submissions', () => {
  it('never exceeds a cap, shows what it counts, starts by weight and ends them all', async () => {
    const evidence = await runFlood(small);
    const limits = { startTolerance: 0.2, endTolerance: null, times: null };
    assert.deepEqual(judgeFlood(evidence, limits), []);
    assert.ok(evidence.cancelled > 0);
  });

  it('is found out when the limit is checked before the place is taken', async () => {
    const loose = {
      submissions: 150,
      maxQueueDepth: 64,
      overMs: 20,
      // Nothing ends while all of them come.
      metadata: { null: { duration_ms: 200 } },
      warmUps: 0,
      leastReads: 0,
      variant: 'loose',
    } as const;
    const evidence = await runFlood({ ...small, ...loose });
    const problems = judgeFlood(evidence, { startTolerance: 1, endTolerance: null, times: null });
    assert.match(problems.join('\n'), /reservations of 72/);
  });
});
