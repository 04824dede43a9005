import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { isRolloutError } from '../../src/core/errors.ts';
import type { ForestCall } from '../../src/sessions/forest-call.ts';
import { pathTo } from '../../src/sessions/forest-node.ts';
import { assembleSamples, lossMaskOf } from '../../src/sessions/samples/assemble.ts';
import { everyBranch } from '../../src/sessions/samples/branches.ts';
import { TokenBudget } from '../../src/sessions/token-budget.ts';
import { TokenForest } from '../../src/sessions/token-forest.ts';

let calls = 0;
function call(
  promptIds: number[],
  outputIds: number[],
  more: Partial<ForestCall> = {},
): ForestCall {
  calls += 1;
  return {
    ...{ call: calls, purpose: 'turn', client: null, repeats: null, promptIds, outputIds },
    ...{ logprobs: outputIds.map((id) => -id / 7), weightVersion: '1', status: 'completed' },
    ...{ cachedTokens: null, messages: null, answer: { text: '', toolArguments: [] }, time: null },
    ...more,
  };
}

function forestOf(given: readonly ForestCall[], maxTrim = 0): TokenForest {
  const forest = new TokenForest({ budget: null, maxTrim });
  for (const one of given) forest.add(one);
  return forest;
}

test('an id that the template lets go is trained on no path but the one that ends with it', () => {
  const forest = forestOf(
    [call([1, 2, 3], [10, 11, 99]), call([1, 2, 3, 10, 11, 50, 51], [20, 98])],
    1,
  );
  const [sample, ...others] = assembleSamples(forest);
  assert.ok(sample !== undefined && others.length === 0);
  assert.deepEqual([...sample.tokens], [1, 2, 3, 10, 11, 50, 51, 20, 98]);
  assert.deepEqual([...lossMaskOf(sample)], [1, 1, 0, 0, 1, 1]);
  assert.deepEqual([...(sample.logprobs ?? [])], [-10 / 7, -11 / 7, 0, 0, -20 / 7, -98 / 7]);
});

test('without an allowance the same history is a branch with a reason, and no id is repaired', () => {
  const messages = [{ role: 'user', content: 'u' }];
  const told = [...messages, { role: 'assistant', content: 'a' }, { role: 'tool', content: 't' }];
  const answer = { text: 'a', toolArguments: [] };
  const forest = forestOf([
    call([1, 2, 3], [10, 11, 99], { messages, answer }),
    call([1, 2, 3, 10, 11, 50, 51], [20, 98], { messages: told }),
  ]);
  assert.equal(forest.counts.get('edit ids-changed'), 1);
  assert.equal(assembleSamples(forest).length, 2);
});

test('a call joins the deepest front, of equally deep ones the last, and never one that sampled nothing', () => {
  const forest = forestOf([
    call([1], [2, 3]),
    call([1], [2, 3]),
    call([1, 2, 3, 4], []),
    call([1, 2, 3, 4], [5]),
    call([1, 2, 3, 4, 5, 6], [7]),
  ]);
  const [, twin, empty, deep, last] = forest.nodes;
  assert.equal(empty?.parent, twin);
  assert.equal(deep?.parent, twin);
  assert.equal(last?.parent, deep);
});

test('a call does not go on from one whose history keeps an id that its own prompt lets go', () => {
  const forest = forestOf(
    [call([1], [2, 99]), call([1, 2, 99, 4], [5]), call([1, 2, 98, 4, 5, 6], [7])],
    1,
  );
  const [first, , last] = forest.nodes;
  assert.equal(last?.parent, first);
  assert.deepEqual([...forest.idsOf(pathTo(last!))], [1, 2, 98, 4, 5, 6, 7]);
});

test('who asks the same before the first answer has come asks beside it, and again only behind it', () => {
  const at = (sentMs: number, endedMs: number) => ({ time: { sentMs, endedMs } });
  const forest = forestOf([
    call([1], [2], at(0, 10)),
    call([1, 2, 3], [4], at(10, 30)),
    call([1, 2, 3], [5], at(20, 40)),
    call([1], [6], at(5, 50)),
    call([1, 2, 3], [7], at(60, 70)),
  ]);
  const { nodes } = forest;
  assert.deepEqual(
    nodes.map(({ edge }) => [edge.label, edge.reason]),
    [
      ['opening', null],
      ['append', null],
      ['sub-agent', 'forked'],
      ['sub-agent', 'own-opening'],
      ['retry', 'asked-again'],
    ],
  );
  assert.equal(nodes[2]?.edge.from, nodes[1]?.call);
  const beside = forestOf([call([1], [2], at(0, 30)), call([1], [3], at(10, 40))]);
  assert.equal(assembleSamples(beside).length, 2);
});

test('the same ids with other log-probabilities or another version have another digest', () => {
  const digests = [
    call([1], [2]),
    call([1], [2], { logprobs: [-1] }),
    call([1], [2], { weightVersion: '2' }),
  ].map((one) => forestOf([one]).link);
  assert.equal(new Set(digests).size, 3);
  assert.equal(forestOf([call([1], [2])]).link, digests[0]);
});

const caps: readonly (readonly [most: number, tokens: number, status: string, trained: number])[] =
  [
    [12, 9, 'completed', 5],
    [9, 9, 'completed', 5],
    [8, 8, 'truncated', 4],
    // The output of the second call cannot make up for it.
    [7, 5, 'completed', 3],
    [4, 4, 'truncated', 2],
  ];
for (const [maxTokens, tokens, status, trained] of caps)
  test(`a sample of at most ${maxTokens} tokens has ${tokens}`, () => {
    const forest = forestOf([call([1, 2], [3, 4, 5]), call([1, 2, 3, 4, 5, 6, 7], [8, 9])]);
    const [sample] = assembleSamples(forest, { maxTokens });
    assert.ok(sample !== undefined);
    assert.equal(sample.tokens.length, tokens);
    assert.equal(sample.trainedTokens, trained);
    assert.equal(sample.status, status);
    assert.equal(sample.isCut, tokens < 9);
  });

test('a sample that would be cut before its first output is none', () => {
  assert.deepEqual(assembleSamples(forestOf([call([1, 2], [3])]), { maxTokens: 2 }), []);
});

test('summaries are trained only where they are wanted', () => {
  const forest = forestOf([call([1], [2, 3]), call([1, 2, 3, 4], [5], { purpose: 'summary' })]);
  const trained = (trainsSummaries: boolean): number[] =>
    assembleSamples(forest, { trainsSummaries }).map((sample) => sample.trainedTokens);
  assert.deepEqual([trained(false), trained(true)], [[2], [3]]);
});

test('an answer that a later call stands in place of is dropped, and kept by a picker that wants all', () => {
  const first = call([1], [2]);
  const forest = forestOf([first, call([1], [3], { repeats: first.call })]);
  assert.equal(assembleSamples(forest).length, 1);
  assert.deepEqual(
    assembleSamples(forest, { pick: everyBranch }).map(({ weight }) => weight),
    [0.5, 0.5],
  );
});

test('log-probabilities that the engine did not say are none for the sample, not zeros', () => {
  const [sample] = assembleSamples(forestOf([call([1], [2], { logprobs: null })]));
  assert.equal(sample?.logprobs, null);
});

const badPickers = {
  'throws an error': () => {
    throw new Error('no');
  },
  'gives a branch back twice': (branches: readonly unknown[]) => [...branches, ...branches],
  'makes a branch of its own': (branches: readonly object[]) => branches.map((one) => ({ ...one })),
  'gives back no list': () => null,
};
for (const [title, pick] of Object.entries(badPickers))
  test(`a picker that ${title} is refused`, () => {
    assert.throws(
      () => assembleSamples(forestOf([call([1], [2])]), { pick: pick as typeof everyBranch }),
      (error) => isRolloutError(error, 'SAMPLE_PICKER_INVALID'),
    );
  });

test('what goes to disk comes back bit for bit, goes with its forest, and a damaged file is an error', () => {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'slipway-forest-'));
  try {
    const budget = new TokenBudget({ maxBytes: 100, dir });
    const forests = [0, 1].map(() => new TokenForest({ budget }));
    const logprobs = [-0, -1.0000000000000002, -5e-324];
    for (const forest of forests) {
      forest.add(call([1, 2, 3], [4, 5, 6], { logprobs }));
      forest.add(call([1, 2, 3, 4, 5, 6, 7], [8, 9, 10], { logprobs: [-0, -0.5, -0.25] }));
      forest.add(call([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], [12]));
    }
    assert.ok(budget.residentBytes <= 100 && readdirSync(dir).length > 0);
    for (const forest of forests) {
      assert.deepEqual(
        forest.nodes.map(({ parent }) => parent?.seq),
        [undefined, 0, 1],
      );
      const [sample] = assembleSamples(forest);
      assert.deepEqual([...(sample?.tokens ?? [])], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
      assert.deepEqual(sample?.logprobs?.slice(0, 3), Float64Array.from(logprobs));
    }
    for (const name of readdirSync(dir)) writeFileSync(path.join(dir, name), 'short');
    const [first] = forests;
    assert.throws(
      () => assembleSamples(first!),
      (error) => isRolloutError(error, 'SESSION_SPILL_FAILED'),
    );
    for (const forest of forests) forest.close();
    assert.deepEqual([budget.residentBytes, readdirSync(dir)], [0, []]);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});
