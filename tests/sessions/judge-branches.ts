/** Compares a forest and its samples with what is known of a synthetic rollout, number for number. */
import assert from 'node:assert/strict';
import type { ForestCall } from '../../src/sessions/forest-call.ts';
import { assembleSamples, lossMaskOf, type Sample } from '../../src/sessions/samples/assemble.ts';
import type { TokenBudget } from '../../src/sessions/token-budget.ts';
import { TokenForest } from '../../src/sessions/token-forest.ts';
import { knownLeaves, type KnownCall } from './synthetic-agent.ts';
import type { SyntheticRollout } from './synthetic-rollouts.ts';

export interface Judged {
  readonly calls: number;
  readonly samples: number;
  readonly trainedTokens: number;
}

export interface JudgingOptions {
  readonly budget?: TokenBudget | null;
  /** What the forest gets in the place of the calls as they were. */
  readonly told?: readonly ForestCall[];
}

export function judgeRollout(rollout: SyntheticRollout, options: JudgingOptions = {}): Judged {
  const forest = new TokenForest({ budget: options.budget ?? null });
  for (const given of options.told ?? rollout.calls.map((call) => call.given)) forest.add(given);
  const told = `rollout ${rollout.seed}`;
  for (const [at, { given, label, parent }] of rollout.calls.entries()) {
    const node = forest.nodes[at];
    assert.equal(node?.edge.label, label, `${told}: label of call ${given.call}`);
    assert.equal(node.parent?.call, parent?.given.call, `${told}: parent of call ${given.call}`);
  }
  const leaves = knownLeaves(rollout.calls);
  const samples = assembleSamples(forest);
  const expected = leaves.filter(({ trained }) => trained.size > 0);
  assert.deepEqual(
    samples.map(({ branch }) => branch.leaf.call),
    expected.map(({ call }) => call.given.call),
    `${told}: leaves`,
  );
  for (const [at, sample] of samples.entries()) {
    const leaf = expected[at];
    if (leaf !== undefined) judgeSample(sample, leaf.path, leaf.trained, told);
  }
  const trainedTokens = samples.reduce((sum, sample) => sum + sample.trainedTokens, 0);
  const weights = samples.reduce((sum, { weight }) => sum + weight, 0);
  if (samples.length > 0) assert.ok(Math.abs(weights - 1) <= 1e-9, `${told}: weights ${weights}`);
  for (const { weight, trainedTokens: own } of samples) assert.equal(weight, own / trainedTokens);
  forest.close();
  return { calls: rollout.calls.length, samples: samples.length, trainedTokens };
}

function judgeSample(
  sample: Sample,
  path: readonly KnownCall[],
  trained: ReadonlySet<KnownCall>,
  told: string,
): void {
  const { tokens, promptLength, spans } = sample;
  const mask = lossMaskOf(sample);
  const knownMask = new Uint8Array(tokens.length - promptLength);
  const knownLogprobs = new Float64Array(tokens.length - promptLength);
  assert.equal(spans.length, path.length, `${told}: spans`);
  for (const [at, known] of path.entries()) {
    const { promptIds, outputIds, logprobs, call, weightVersion } = known.given;
    const begin = promptIds.length;
    const end = begin + outputIds.length;
    assert.deepEqual([...tokens.subarray(0, begin)], [...promptIds], `${told}: prompt of ${call}`);
    assert.deepEqual(
      [...tokens.subarray(begin, end)],
      [...outputIds],
      `${told}: output of ${call}`,
    );
    assert.equal(spans[at]?.node.weightVersion, weightVersion);
    if (trained.has(known)) knownMask.fill(1, begin - promptLength, end - promptLength);
    for (const [index, value] of (logprobs ?? []).entries())
      knownLogprobs[begin - promptLength + index] = value;
  }
  assert.deepEqual(mask, knownMask, `${told}: mask of the sample of ${sample.branch.leaf.call}`);
  const bits = (values: Float64Array | null): BigUint64Array =>
    new BigUint64Array((values ?? new Float64Array()).slice().buffer);
  assert.deepEqual(bits(sample.logprobs), bits(knownLogprobs), `${told}: log-probabilities`);
}
