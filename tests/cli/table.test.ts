import assert from 'node:assert/strict';
import { test } from 'node:test';
import { counted, formatDuration, renderTable } from '../../src/cli/table.ts';

test('numbers stand to the right, text to the left, absent values are dashes', () => {
  assert.equal(
    renderTable(
      ['task', 'reward'],
      [
        ['one', 1],
        ['another', 0.123456],
        ['third', null],
      ],
    ),
    [
      'task     reward',
      '───────  ──────',
      'one           1',
      'another  0.1235',
      'third         –',
    ].join('\n'),
  );
});

test('a control character of a task does not reach the terminal', () => {
  const table = renderTable(['task'], [['\x1b[2Jred\nline\u009b1m']]);
  assert.doesNotMatch(table.replaceAll('\n', ''), /[\x00-\x1f\x7f-\x9f]/);
  assert.equal(table.split('\n').length, 3);
});

for (const [ms, text] of [
  [850, '850 ms'],
  [12_340, '12.3 s'],
  [245_000, '4 min 05 s'],
] as const)
  test(`${ms} ms reads as ${text}`, () => {
    assert.equal(formatDuration(ms), text);
  });

test('one of a kind has no plural', () => {
  assert.equal(counted(1, 'trial'), '1 trial');
  assert.equal(counted(0, 'retry', 'retries'), '0 retries');
});
