import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Clock } from '../../src/core/clock.ts';
import { isRolloutError, RolloutError } from '../../src/core/errors.ts';
import { never } from '../../src/core/linked-abort.ts';
import { waitUntilHealthy } from '../../src/trial/healthcheck.ts';

/** Answers in turn; time passes only in sleeps. */
function machine(answers: readonly (number | 'timeout')[]) {
  let now = 0;
  const sleeps: number[] = [];
  let attempts = 0;
  const clock: Clock = {
    now: () => new Date(now),
    monotonicMs: () => now,
    sleep: async (ms) => {
      sleeps.push(ms);
      now += ms;
    },
  };
  const exec = async () => {
    const answer = answers[Math.min(attempts, answers.length - 1)] ?? 0;
    attempts += 1;
    if (answer === 'timeout')
      throw new RolloutError('EXEC_TIMEOUT', 'slow', { phase: 'environment' });
    return { exitCode: answer, stdout: '', stderr: '', isTruncated: false };
  };
  return { clock, exec, sleeps, attempts: () => attempts };
}

const check = {
  command: 'probe',
  intervalMs: 100,
  timeoutMs: 50,
  startPeriodMs: 0,
  startIntervalMs: 10,
  retries: 3,
};

async function wait(answers: readonly (number | 'timeout')[], changes: Partial<typeof check> = {}) {
  const { clock, exec, sleeps, attempts } = machine(answers);
  const run = {
    check: { ...check, ...changes },
    environment: { exec },
    user: null,
    clock,
    field: 'environment.healthcheck',
  };
  const error = await waitUntilHealthy(run, never).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  return { error, sleeps, attempts: attempts() };
}

describe('a health check', () => {
  test('passes with the first exit 0', async () => {
    assert.deepEqual(await wait([1, 1, 0]), { error: null, sleeps: [100, 100], attempts: 3 });
  });

  test('fails after as many failures in a row as it may have', async () => {
    const { error, attempts } = await wait([1]);
    assert.ok(isRolloutError(error, 'HEALTHCHECK_FAILED'));
    assert.equal(attempts, 3);
  });

  test('does not count attempts that began within the start period', async () => {
    const { error, sleeps } = await wait([1, 1, 1, 1, 0], { startPeriodMs: 25, retries: 2 });
    assert.equal(error, null);
    assert.deepEqual(sleeps, [10, 10, 10, 100]);
  });

  test('counts an attempt that ran into its own limit like any failure', async () => {
    assert.deepEqual(await wait(['timeout', 'timeout', 0]), {
      error: null,
      sleeps: [100, 100],
      attempts: 3,
    });
  });
});
