import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { learnMerges } from '../../scripts/vocabulary/learn-merges.js';
import {
  byteCharacters,
  pieces,
  tokenizerDocument,
} from '../../scripts/vocabulary/tokenizer-document.js';
import { byteCharacters as ownByteCharacters } from '../../src/engines/server/vocabulary/byte-alphabet.ts';
import { hostileTexts } from '../engines/server/vocabulary/chats.ts';

suite('training a vocabulary', () => {
  test('the most frequent pair is merged first, ties by spelling', () => {
    const texts = ['ab ab ab', 'cd cd', 'abcd'];
    assert.deepEqual(learnMerges(texts, 4), [
      ['a', 'b'],
      ['c', 'd'],
      ['Ġ', 'ab'],
    ]);
  });

  test('the order of texts does not matter', () => {
    const texts = [...hostileTexts, 'lorem ipsum lorem', 'ipsum dolor ipsum', 'dolor lorem'];
    assert.deepEqual(learnMerges([...texts].reverse(), 50), learnMerges(texts, 50));
  });

  test('no pair is merged twice, and a token that two pairs spell has one id', () => {
    const merges = learnMerges(['aaaaaaaaaaaaaaaa aaaaaaa aaa aaaa aaaaa aaaaaa'], 20);
    const keys = merges.map((pair) => pair.join(' '));
    assert.equal(new Set(keys).size, keys.length);
    const { model } = tokenizerDocument([
      ['a', 'b'],
      ['b', 'c'],
      ['ab', 'c'],
      ['a', 'bc'],
    ]);
    const ids = Object.values(model.vocab).sort((a, b) => a - b);
    assert.deepEqual(ids, [...ids.keys()]);
  });

  test('pieces leave nothing out', () => {
    for (const text of hostileTexts) assert.equal((text.match(pieces) ?? []).join(''), text);
  });

  test('bytes are spelt as the loader reads them', () => {
    assert.deepEqual(byteCharacters, ownByteCharacters);
  });
});
