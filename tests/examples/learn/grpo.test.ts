import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { CollectedGroup, GroupSeed } from '../../../src/collector/group.ts';
import type { CollectedMember, MemberEnd, MemberRequest } from '../../../src/collector/member.ts';
import type { TrainingSample } from '../../../src/collector/training-sample.ts';
import { loadVocabulary } from '../../../src/engines/server/vocabulary/load-vocabulary.ts';
import { letters, rows } from '../../../examples/learn/exercises.ts';
import {
  advantages,
  grpoStep,
  OffPolicyError,
  type GrpoOptions,
} from '../../../examples/learn/grpo.ts';
import type { LetterPolicy } from '../../../examples/learn/letter-policy.ts';
import { newPolicy, PolicyCodec, PolicyModel } from '../../../examples/learn/policy-model.ts';
import { withMistake } from '../../../examples/learn/shifted-samples.ts';

let codec: PolicyCodec;
before(async () => {
  codec = new PolicyCodec(await loadVocabulary(null));
});

/** A policy whose distributions are all different. */
function uneven(): LetterPolicy {
  const policy = newPolicy();
  policy.ascend(
    policy.zeros().map((_, index) => Math.sin(index)),
    1,
  );
  return policy;
}

/** Rolls a policy out as the workflow does, without a server. */
async function rollOut(policy: LetterPolicy, { row, seed }: { row: number; seed: number }) {
  const model = new PolicyModel(codec, policy, seed);
  const { messages: [first] = [], metadata, label } = rows[row] ?? {};
  const messages: { role: 'user' | 'assistant'; content: string }[] = first ? [first] : [];
  const samples: TrainingSample[] = [];
  let right = 0;
  for (const [turn, then] of [metadata?.['then'], null].entries()) {
    const promptIds = model.render({ messages, tools: [] });
    const request = { requestId: 'r', promptIds, sampling: { seed }, topLogprobs: 0 };
    const output: { id: number; logprob: number }[] = [];
    for await (const token of model.sample(request, new AbortController().signal))
      output.push(token);
    const ids = output.map(({ id }) => id);
    const text = codec.vocabulary.decode(ids, { skipsSpecial: true });
    if (text === label?.[turn]) right += 0.5;
    messages.push({ role: 'assistant', content: text });
    if (typeof then === 'string') messages.push({ role: 'user', content: then });
    samples.push({
      ...{ tokens: [...promptIds, ...ids, 1], promptLength: promptIds.length, weight: 0.5 },
      ...{ lossMask: [...ids.map(() => 1 as const), 0], isTruncated: false },
      logprobs: [...output.map(({ logprob }) => logprob), 0],
      spans: [
        ...[
          {
            begin: promptIds.length,
            end: promptIds.length + ids.length,
            isTrained: true,
            weightVersion: '1',
          },
        ],
      ],
    });
  }
  return { samples, reward: right };
}

async function group(policy: LetterPolicy, row: number, seed: number): Promise<CollectedGroup> {
  const members = await Promise.all(
    Array.from({ length: 8 }, async (_, index): Promise<CollectedMember> => {
      const { samples, reward } = await rollOut(policy, { row, seed: seed * 8 + index });
      const end: MemberEnd = {
        ...{ status: 'completed', fault: null, cause: null, message: null, isRetryable: false },
        ...{ reward, samples, metadata: {} },
      };
      const counts = { isMasked: false, isRemoved: false, attempts: 1, durationMs: 1 };
      return { request: {} as MemberRequest, end, reward, ...counts };
    }),
  );
  return { seed: {} as GroupSeed, members, durationMs: 1, oldestVersion: 1 };
}

const batch = async (policy: LetterPolicy, round: number) => {
  const groups = rows.map((_, row) => group(policy, row, round * 64 + row));
  return { groups: await Promise.all(groups), codec, version: '1' };
};

const options = (policy: LetterPolicy, over: Partial<GrpoOptions> = {}): GrpoOptions => ({
  ...{ rate: 2, clip: 0.2, versions: new Map([['1', policy.copy()]]), oldLogprobs: 'reported' },
  isOnPolicy: true,
  ...over,
});

describe('the policy that learns', () => {
  it('has the gradient that finite differences give', () => {
    const policy = uneven();
    const at = { state: { exercise: 3, position: 1 }, action: 2 };
    const logprob = (of: LetterPolicy) => of.logprobs(at.state)[at.action] ?? NaN;
    const gradient = policy.zeros();
    policy.addGradient(gradient, { ...at, scale: 1 });
    for (const [index, slope] of gradient.entries()) {
      const moved = policy.copy();
      const unit = policy.zeros();
      unit[index] = 1;
      moved.ascend(unit, 1e-6);
      assert.ok(Math.abs((logprob(moved) - logprob(policy)) / 1e-6 - slope) < 1e-5, `${index}`);
    }
  });

  it('says of what it samples the log-probability that it scores the same ids with', async () => {
    const model = new PolicyModel(codec, uneven(), 1);
    const { samples } = await rollOut(uneven(), { row: 2, seed: 5 });
    for (const { tokens, promptLength, logprobs } of samples) {
      const ids = tokens.slice(0, -1);
      const request = { ids, from: promptLength, topLogprobs: 0 };
      const scored = await model.score(request);
      assert.deepEqual(
        scored.map(({ logprob }) => logprob),
        logprobs?.slice(0, -1),
      );
    }
  });

  it('normalises rewards within a group, and gives nothing where all are equal', () => {
    assert.deepEqual(advantages([1, 1, 1]), [0, 0, 0]);
    const [low = 0, high = 0] = advantages([0, 1]);
    assert.ok(Math.abs(low + high) < 1e-12 && Math.abs(high - 1) < 1e-5);
  });

  it('learns on its own rollouts', async () => {
    const policy = newPolicy();
    const rewards: number[] = [];
    for (let round = 0; round < 40 && (rewards.at(-1) ?? 0) <= 0.9; round += 1)
      rewards.push(grpoStep(policy, await batch(policy, round), options(policy)).meanReward);
    assert.ok((rewards[0] ?? 1) < 0.2 && (rewards.at(-1) ?? 0) > 0.9, rewards.join(' '));
  });

  it('does not learn by masks that are one token late', async () => {
    const policy = newPolicy();
    const rewards: number[] = [];
    for (let round = 0; round < 25; round += 1) {
      const { groups, ...rest } = await batch(policy, round);
      const late = groups.map((each) => withMistake(each, 'masks'));
      const recomputed = options(policy, { oldLogprobs: 'recomputed' });
      rewards.push(grpoStep(policy, { groups: late, ...rest }, recomputed).meanReward);
    }
    assert.ok(Math.max(...rewards) <= 0.4, rewards.join(' '));
  });

  it('refuses log-probabilities that are one token late, and changes nothing', async () => {
    const policy = uneven();
    const before = policy.logprobs({ exercise: 0, position: 0 });
    const { groups, ...rest } = await batch(policy, 0);
    const late = groups.map((each) => withMistake(each, 'logprobs'));
    assert.throws(
      () => grpoStep(policy, { groups: late, ...rest }, options(policy)),
      OffPolicyError,
    );
    assert.deepEqual(policy.logprobs({ exercise: 0, position: 0 }), before);
  });

  it('does not move tokens whose ratio has left the trust region', async () => {
    const sampled = newPolicy();
    const { groups } = await batch(sampled, 1);
    const policy = sampled.copy();
    for (let times = 0; times < 50; times += 1)
      grpoStep(policy, { groups, codec, version: '2' }, options(sampled, { rate: 0.5 }));
    const ratio = (state: { exercise: number; position: number }) =>
      letters.map((_, action) =>
        Math.exp((policy.logprobs(state)[action] ?? 0) - (sampled.logprobs(state)[action] ?? 0)),
      );
    const highest = Math.max(...rows.flatMap((_, exercise) => ratio({ exercise, position: 0 })));
    assert.ok(highest < 2.5, `${highest}`);
  });
});
