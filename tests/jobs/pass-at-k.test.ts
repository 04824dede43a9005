import assert from 'node:assert/strict';
import { test } from 'node:test';
import { passAtK, type Attempt } from '../../src/jobs/pass-at-k.ts';

/** `outcomes`: 1 = success, 0 = failure, x = no verdict. */
function attempts(task: string, outcomes: string): Attempt[] {
  return Array.from(outcomes, (outcome) => ({
    task,
    rewards: outcome === 'x' ? null : { reward: Number(outcome) },
  }));
}

function near(actual: Record<string, number>, expected: Record<string, number>): void {
  assert.deepEqual(Object.keys(actual), Object.keys(expected));
  for (const [k, value] of Object.entries(expected))
    assert.ok(Math.abs((actual[k] ?? Number.NaN) - value) < 1e-12, `pass@${k} is ${actual[k]}`);
}

test('one success in two attempts is certain within two tries', () => {
  near(passAtK(attempts('t', '10')), { 2: 1 });
});

test('one success in four attempts: 1 − C(3,2)/C(4,2) = 1/2, and 1 for k = 4', () => {
  near(passAtK(attempts('t', '1000')), { 2: 0.5, 4: 1 });
});

test('two successes in five attempts: 1 − C(3,2)/C(5,2) = 7/10', () => {
  near(passAtK(attempts('t', '11000')), { 2: 0.7, 4: 1, 5: 1 });
});

test('tasks are averaged, k goes up to the smallest number of attempts', () => {
  near(passAtK([...attempts('a', '1000'), ...attempts('b', '00')]), { 2: 0.25 });
});

test('a missing verdict is a failed attempt', () => {
  near(passAtK(attempts('t', '1xxx')), { 2: 0.5, 4: 1 });
});

test('ten attempts have k = 2, 4, 5, 8 and 10', () => {
  assert.deepEqual(Object.keys(passAtK(attempts('t', '1000000000'))), ['2', '4', '5', '8', '10']);
});

test('partial rewards have no pass@k', () => {
  assert.deepEqual(passAtK([{ task: 't', rewards: { reward: 0.5 } }, ...attempts('t', '1')]), {});
});

test('several channels have no pass@k', () => {
  assert.deepEqual(passAtK([{ task: 't', rewards: { a: 1, b: 1 } }, ...attempts('t', '11')]), {});
});

test('without any verdict there is no pass@k', () => {
  assert.deepEqual(passAtK(attempts('t', 'xx')), {});
});

test('a single attempt has no pass@k', () => {
  assert.deepEqual(passAtK(attempts('t', '1')), {});
});
