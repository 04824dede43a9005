import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CollectedMember, MemberRequest } from '../../../src/collector/member.ts';
import { rewardByType } from '../../../src/collector/rewards/reward-by-type.ts';
import { loadVocabulary } from '../../../src/engines/server/vocabulary/load-vocabulary.ts';
import { isRolloutError } from '../../../src/core/errors.ts';
import { success } from '../scripted-rollouts.ts';

const vocabulary = await loadVocabulary(null);
const options = {
  ...{ type: 'math', custom: null, remote: null, random: () => 0, vocabulary, key: 'score' },
};
const { signal } = new AbortController();

function member(response: string, label: string): CollectedMember {
  const prompt = vocabulary.encode('What is it? \\boxed{7}', { parsesSpecial: false });
  const output = vocabulary.encode(response, { parsesSpecial: false });
  const sample = {
    ...{ tokens: [...prompt, ...output, vocabulary.endId], promptLength: prompt.length },
    ...{ lossMask: [...output.map(() => 1 as const), 1 as const], logprobs: null, weight: 1 },
    ...{ isTruncated: false, spans: [] },
  };
  const row = { rowIndex: 0, epoch: 0, messages: [], label, metadata: {} };
  const request = { rolloutId: 'r', row } as unknown as MemberRequest;
  const counts = { isMasked: false, isRemoved: false, attempts: 1, durationMs: 1 };
  return { request, end: { ...success, samples: [sample] }, reward: null, ...counts };
}

test('the response is the text behind the prompt, without special tokens', async () => {
  assert.equal(await rewardByType(options)(member('so \\boxed{1/2}', '0.5'), signal), 1);
  assert.equal(await rewardByType(options)(member('no box', '7'), signal), 0);
  const f1 = rewardByType({ ...options, type: 'f1' });
  assert.equal(await f1(member('hello', 'hello'), signal), 1);
});

test('a value that is an object gives the field that is named', async () => {
  const dapo = rewardByType({ ...options, type: 'dapo' });
  assert.equal(await dapo(member('Answer: 4', '5'), signal), -1);
  await assert.rejects(
    async () => await rewardByType({ ...options, type: 'dapo', key: 'x' })(member('', '5'), signal),
    (error) => isRolloutError(error, 'REWARD_FUNCTION_INVALID'),
  );
});
