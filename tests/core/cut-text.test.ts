import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { cutText } from '../../src/core/cut-text.ts';

describe('a text that is cut', () => {
  const cases = [
    ['is whole when it is short enough', 'ab😀', 4, 'ab😀'],
    ['ends where it may', 'abc', 2, 'ab'],
    ['loses a character that would be halved', 'ab😀', 3, 'ab'],
    ['keeps a character that just fits', 'a😀b', 3, 'a😀'],
    ['may be empty', '😀', 1, ''],
  ] as const;
  for (const [what, text, length, expected] of cases)
    it(what, () => assert.equal(cutText(text, length), expected));
});
