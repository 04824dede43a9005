import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  judgeTask,
  readResults,
  taskTable,
  type RolloutLine,
} from '../../scripts/quickstart/server-outcome.js';

const result = (id: string, changes: Partial<RolloutLine> = {}): RolloutLine => ({
  ...{ task: 'sum', id, status: 'success', reward: 0.25, message: null, ms: 1500 },
  ...changes,
});
const expected = { reward: 0.25, rollouts: 2 };
const right = [result('a'), result('b', { ms: 2500 })];

test('one result per rollout with the reward of the script is as expected', () => {
  const row = judgeTask('sum', [...right, result('c', { task: 'other' })], expected);
  assert.deepEqual(row, {
    ...{ task: 'sum', rewards: ['0.25', '0.25'], expected: '0.25', slowest: '2.5 s' },
    ...{ verdict: 'as expected', problems: [] },
  });
});

const lost = { reward: null, status: 'failure', message: 'ENVIRONMENT_LOST: gone' };
for (const [what, results, problem] of [
  [
    'a wrong reward',
    [result('a', { reward: 1 }), result('b')],
    'a ended in success with 1 for 0.25',
  ],
  [
    'a failure',
    [result('a', lost), result('b')],
    'a ended in failure with no reward for 0.25: ENVIRONMENT_LOST: gone',
  ],
  ['a lost result', [result('a')], 'sum has 1 results, not one each for 2'],
  ['a result that came twice', [result('a'), result('a')], 'sum has 2 results, not one each for 2'],
] as const)
  test(`${what} is found`, () => {
    const { verdict, problems } = judgeTask('sum', results, expected);
    assert.deepEqual([verdict, problems], ['not as expected', [problem]]);
  });

test('lines that are no results are passed over, and the table has one row per task', () => {
  const output = `hello\n${JSON.stringify(right[0])}\n${JSON.stringify(right[1])}\n`;
  const results = readResults(output);
  assert.deepEqual(results, right);
  assert.equal(
    taskTable([judgeTask('sum', results, expected)]),
    'task  rewards     expected  slowest\nsum   0.25  0.25      0.25    2.5 s  as expected',
  );
});
