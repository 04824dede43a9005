import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TokenForest } from '../../src/sessions/token-forest.ts';
import { controls, findsIt } from './broken-branches.ts';
import { judgeRollout } from './judge-branches.ts';
import { actions, rewoundRollout, syntheticRollout, type Action } from './synthetic-rollouts.ts';

test('labels, parents, leaves, masks, log-probabilities and weights of agents that do everything equal the truth', () => {
  const done = new Set<Action>();
  for (let seed = 1; seed <= 60; seed += 1) {
    const rollout = syntheticRollout(seed, 14);
    for (const action of rollout.done) done.add(action);
    judgeRollout(rollout);
  }
  assert.deepEqual([...done].sort(), [...actions].sort());
});

test('a compaction that rewinds 177 turns is one branch of two', () => {
  assert.equal(judgeRollout(rewoundRollout(177)).samples, 2);
});

test('fifty turns that only go on are one sample', () => {
  const { calls } = rewoundRollout(49);
  const forest = new TokenForest({ budget: null });
  const going = calls.filter(({ label }) => label === 'opening' || label === 'append').slice(0, 50);
  for (const { given } of going) forest.add(given);
  assert.deepEqual(
    [...forest.counts],
    [
      ['opening', 1],
      ['append', 49],
    ],
  );
});

for (const control of controls)
  test(`the judge finds ${control.title}`, () => {
    assert.ok([1, 2, 3].some((seed) => findsIt(control, seed)));
  });
