import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rolloutIdMaxBytes, rolloutIdProblem } from '../../../src/wire/rollout/rollout-id.ts';

test('an id is one plain path segment that survives as a file name and in UTF-8', () => {
  const good = ['a', 'run-1:0', '..a', 'é✓😀', ' ', 'x'.repeat(rolloutIdMaxBytes)];
  for (const id of good) assert.equal(rolloutIdProblem(id), null, id);
  const bad: readonly [string, RegExp][] = [
    ['', /empty/],
    ['.', /relative/],
    ['..', /relative/],
    ['a/b', /slash/],
    ['a\\b', /slash/],
    ['a\u0000', /control/],
    ['a\u007f', /control/],
    ['a\ud83d', /well-formed/],
    ['\ude00a', /well-formed/],
    ['é'.repeat(rolloutIdMaxBytes / 2 + 1), /longer than 256 bytes/],
  ];
  for (const [id, problem] of bad) assert.match(rolloutIdProblem(id) ?? '', problem, id);
});
