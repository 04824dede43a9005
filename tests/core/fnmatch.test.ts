import assert from 'node:assert/strict';
import { it } from 'node:test';
import { fnmatch } from '../../src/core/fnmatch.ts';

const rows: readonly [name: string, pattern: string, isMatch: boolean][] = [
  ['hello-world', 'hello-*', true],
  ['a/b/c.txt', '*.txt', true],
  ['a/b', 'a?b', true],
  ['ab', 'a?b', false],
  ['x1', 'x[0-9]', true],
  ['xa', 'x[!0-9]', true],
  ['x]', 'x[]]', true],
  ['x-', 'x[a-]', true],
  ['x^', 'x[^]', true],
  ['x[', 'x[', true],
  ['a.b', 'a.b', true],
  ['aXb', 'a.b', false],
  ['Hello', 'hello', false],
  ['x', 'x[z-a]', false],
  ['line\nbreak', 'line*', true],
  ['', '*', true],
  ['a(b)', 'a(b)', true],
  ['x\\', 'x[\\]', true],
];

for (const [name, pattern, isMatch] of rows)
  it(`${JSON.stringify(pattern)} ${isMatch ? 'matches' : 'does not match'} ${JSON.stringify(name)}`, () => {
    assert.equal(fnmatch(name, pattern), isMatch);
  });
