/** The small form of `npm run prove -- streams`: nothing is left of streams that are cut all the time, and what is left is found. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { judgeStreams } from './judge-streams.ts';
import { runStreams, type StreamsOptions } from './streams.ts';

const small: StreamsOptions = {
  ...{ live: 24, ms: 1_500, abortsPerSecond: 12, eventEveryMs: 50, eventsPerStream: 8 },
  ...{ workers: 1, seed: 6, warmMs: 0, settleMs: 20_000 },
};
const limits = { live: 1, quiet: null };

describe('streams of many rollouts', { timeout: 240_000 }, () => {
  it('leave nothing behind in a process of the gateway', async () => {
    const evidence = await runStreams(small);
    assert.deepEqual(judgeStreams(evidence, limits), []);
    assert.ok(evidence.agents.events > small.live);
    assert.ok(evidence.aborts >= small.live);
  });

  it('are found where they outlive their rollout', async () => {
    const evidence = await runStreams({
      ...{ ...small, workers: 0, live: 6, ms: 100, settleMs: 1_000 },
      ...{ variant: 'leaky', eventsPerStream: 100_000 },
    });
    const problems = judgeStreams(evidence, limits).join('\n');
    assert.match(problems, /left at the end: 2 routes/);
    assert.match(problems, /left at the end: \d+ streams/);
    assert.match(problems, /left at the end: \d+ sockets/);
  });
});
