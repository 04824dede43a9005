import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { defaultCauses } from '../../../src/collector/cause-policy.ts';
import { memberEnd } from '../../../src/collector/server/end-of-outcome.ts';
import type { outcomeDocument } from '../../../src/wire/api/rollout.ts';
import type { z } from 'zod';

type Outcome = z.output<typeof outcomeDocument>;

const success: Outcome = {
  ...{ status: 'success', reward: 0.5, err_message: null, err_category: null, stage: 'done' },
  ...{ cause: null, trainable: true, retryable: false, samples: null },
  verdict: { rewards: { reward: 0.5 } },
};
const failure: Outcome = {
  ...{ ...success, status: 'failure', reward: null, trainable: false, verdict: null },
};
const untrainable = (reason: string): Outcome['samples'] => ({
  ...{ count: 0, tokens: 0, trained_tokens: 0, without_log_probs: 0, labels: {}, calls: 0 },
  ...{ calls_without_ids: 0, link: null, not_trainable: { reason, message: reason } },
});

describe('the end of a rollout at a server', () => {
  for (const { title, outcome, wasAborted = false, expected } of [
    {
      title: 'a success',
      outcome: success,
      expected: ['completed', null, 0.5, 'keep'],
    },
    {
      title: 'a success that nobody graded',
      outcome: { ...success, reward: null, verdict: null, trainable: false },
      expected: ['completed', null, null, 'keep'],
    },
    {
      title: 'an agent out of time whose work was verified',
      outcome: { ...failure, cause: 'AGENT_TIMEOUT', trainable: true, verdict: success.verdict },
      expected: ['completed', 'agent', 0.5, 'keep'],
    },
    {
      title: 'a verdict of one channel by another name',
      outcome: {
        ...{ ...failure, cause: 'AGENT_TIMEOUT', trainable: true },
        verdict: { rewards: { tests: 0.25 } },
      },
      expected: ['completed', 'agent', 0.25, 'keep'],
    },
    {
      title: 'an agent that failed without a verdict',
      outcome: { ...failure, cause: 'CONTEXT_OVERFLOW' },
      expected: ['failed', 'agent', null, 'mask'],
    },
    {
      title: 'a lost sandbox',
      outcome: { ...failure, cause: 'ENVIRONMENT_LOST', retryable: true },
      expected: ['failed', 'infrastructure', null, 'refill'],
    },
    {
      title: 'a task that is none',
      outcome: { ...failure, cause: 'TASK_NOT_FOUND' },
      expected: ['failed', 'task', null, 'give-up'],
    },
    {
      title: 'a verifier that hung',
      outcome: { ...failure, cause: 'VERIFIER_TIMEOUT' },
      expected: ['failed', 'verifier', null, 'refill'],
    },
    {
      title: 'a defect',
      outcome: { ...failure, cause: 'INTERNAL' },
      expected: ['failed', 'infrastructure', null, 'refill'],
    },
    {
      title: 'a cancellation by somebody else',
      outcome: { ...failure, status: 'cancelled', cause: 'CANCELLED' } as const,
      expected: ['aborted', 'cancelled', null, 'refill'],
    },
    {
      title: 'a verdict of an agent that called no model',
      outcome: { ...success, samples: untrainable('no-calls') },
      expected: ['failed', 'infrastructure', null, 'refill'],
    },
    {
      title: 'an agent whose engine was told to end everything',
      outcome: success,
      wasAborted: true,
      expected: ['aborted', 'infrastructure', null, 'refill'],
    },
  ])
    it(`is read of ${title}`, () => {
      const end = memberEnd(outcome, { samples: [], wasAborted, metadata: {} });
      assert.deepEqual([end.status, end.fault, end.reward, defaultCauses(end)], expected);
    });
});
