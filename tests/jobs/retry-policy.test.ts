import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mayRetry, retryWaitMs, type RetryPolicy } from '../../src/jobs/retry-policy.ts';

const policy: RetryPolicy = {
  maxRetries: 2,
  include: null,
  exclude: new Set(['AgentTimeoutError']),
  waitMultiplier: 2,
  minWaitMs: 1000,
  maxWaitMs: 10_000,
};

test('waits grow by the multiplier up to the maximum', () => {
  const waits = [1, 2, 3, 4, 5, 6].map((attempt) => retryWaitMs(policy, attempt));
  assert.deepEqual(waits, [1000, 2000, 4000, 8000, 10_000, 10_000]);
});

test('a trial is tried at most max_retries + 1 times', () => {
  assert.deepEqual(
    [1, 2, 3].map((attempt) => mayRetry(policy, ['RuntimeError'], attempt)),
    [true, true, false],
  );
});

test('excluded types are not tried again, by exact name', () => {
  assert.equal(mayRetry(policy, ['AgentTimeoutError'], 1), false);
  assert.equal(mayRetry(policy, ['AgentTimeout'], 1), true);
});

test('with an include list only its types are tried again', () => {
  const chosen = { ...policy, include: new Set(['ApiRateLimitError']) };
  assert.equal(mayRetry(chosen, ['ApiRateLimitError'], 1), true);
  assert.equal(mayRetry(chosen, ['RuntimeError'], 1), false);
});

test('an empty include list means every type', () => {
  assert.equal(mayRetry({ ...policy, include: new Set() }, ['RuntimeError'], 1), true);
});

test('exclude beats include', () => {
  const both = { ...policy, include: new Set(['AgentTimeoutError']) };
  assert.equal(mayRetry(both, ['AgentTimeoutError'], 1), false);
});

test('a failure goes by its type and by its code', () => {
  const names = ['RuntimeError', 'ENVIRONMENT_LOST'];
  assert.equal(mayRetry({ ...policy, include: new Set(['ENVIRONMENT_LOST']) }, names, 1), true);
  assert.equal(mayRetry({ ...policy, include: new Set(['EXEC_FAILED']) }, names, 1), false);
  assert.equal(mayRetry({ ...policy, exclude: new Set(['ENVIRONMENT_LOST']) }, names, 1), false);
});
