import assert from 'node:assert/strict';
import { test } from 'node:test';
import { evalStatistics } from '../../src/jobs/eval-statistics.ts';
import type { RewardMap } from '../../src/jobs/metrics.ts';
import type { TrialSummary } from '../../src/jobs/trial-summary.ts';

function trial(trialName: string, rewards: RewardMap): TrialSummary {
  return {
    trialName,
    taskName: 'a-task',
    source: null,
    agentName: 'nop',
    modelName: null,
    rewards,
    failure: null,
    tokens: { input: null, cache: null, output: null, costUsd: null },
    turns: null,
    lacksTokenIds: false,
    phaseTimes: {},
    startedAt: null,
  };
}

test('channels are keys and nothing else, whatever a verifier calls them', async () => {
  const channels = ['__proto__', 'constructor', 'toString', 'reward'];
  const rewards = Object.fromEntries(channels.map((channel) => [channel, 1]));
  const [agentName, modelName, source] = ['nop', null, 'adhoc'];
  const trials = [trial('first', rewards), trial('second', rewards)];
  const stats = await evalStatistics(
    { agentName, modelName, source, key: 'nop__adhoc', trials },
    { metrics: [], script: null },
  );
  assert.deepEqual(
    Object.entries(stats.reward_stats).map(([channel, byValue]) => [
      channel,
      Object.entries(byValue),
    ]),
    channels.map((channel) => [channel, [['1.0', ['first', 'second']]]]),
  );
  for (const polluted of [{}, Object])
    assert.ok(!('1.0' in polluted), 'an object of the whole process was written to');
});
