/** A part of `npm run prove -- deadlines`, on sandboxes in memory; no times are looked at. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import { loadTask } from '../../src/tasks/load-task.ts';
import { localKinds, overrunProblems, runOverruns } from '../chaos/deadlines/overruns.ts';
import { budgetProblems, rightRules } from '../chaos/deadlines/rollout-budgets.ts';
import { FakeProvider } from '../fakes/environment/fake-provider.ts';
import { taskFolder } from '../fakes/task-folder.ts';
import { answerTask } from '../trial/trial-bench.ts';

describe('budgets of rollouts', () => {
  it('give agent and verifier what was asked for, and the verifier time of its own', async () => {
    await using folder = await taskFolder(answerTask);
    const task = await loadTask({ dir: folder.dir, signal: never, isVerificationEnabled: true });
    for (let seed = 0; seed < 5_000; seed += 1)
      assert.deepEqual(budgetProblems(seed, task), [], `seed ${seed}`);
    for (const rules of [
      { ...rightRules, chargedShare: 1 },
      { ...rightRules, chargesLocally: false },
    ]) {
      const seeds = Array.from({ length: 50 }, (_, seed) => seed);
      assert.ok(seeds.some((seed) => budgetProblems(seed, task, rules).length > 0));
    }
  });
});

describe('parts of a rollout that run longer than their limit', { timeout: 120_000 }, () => {
  it('are ended and typed, with trajectory and verdict', async () => {
    const kinds = ['agent-sleeps', 'verifier-sleeps', 'setup-sleeps', ...localKinds] as const;
    const overruns = await runOverruns({
      ...{ provider: new FakeProvider(), kinds, count: kinds.length },
      ...{ concurrency: 3, limitMs: 1_500 },
    });
    assert.equal(overruns.length, kinds.length);
    for (const overrun of overruns) assert.deepEqual(overrunProblems(overrun), []);
    const [agents] = overruns.filter(({ kind }) => kind === 'agent-sleeps');
    assert.ok(agents !== undefined);
    const lost = { ...agents, result: { ...agents.result, trajectory: null } };
    assert.notDeepEqual(overrunProblems(lost), [], 'a lost trajectory is found');
    const beside = { reward: 1, overlap: 1 };
    const outcome = { ...agents.result.outcome, verdict: { rewards: beside } };
    const overlapping = { ...agents, result: { ...agents.result, outcome } };
    assert.notDeepEqual(overrunProblems(overlapping), [], 'an overlap is found');
  });
});
