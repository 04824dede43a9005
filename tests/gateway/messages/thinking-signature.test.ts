import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  carriedThinking,
  signatureOf,
} from '../../../src/gateway/dialects/messages/thinking-signature.ts';

describe('signatures of thinking', () => {
  for (const text of ['', 'Hm.', '\ufefföé漢🙂\n\0', 'x'.repeat(100_000)])
    it(`give back the ${text.length} characters that they seal`, () => {
      assert.equal(carriedThinking(signatureOf(text, false)), text);
    });

  it('of shown thinking are short, carry nothing and differ by the text', () => {
    const [one, other] = [signatureOf('one', true), signatureOf('other', true)];
    assert.notEqual(one, other);
    assert.equal(one.length, signatureOf('x'.repeat(100_000), true).length);
    assert.equal(carriedThinking(one), null);
  });

  for (const foreign of ['', 'c2ln', 'EqQBCgIYAhIkZ/w+=', 'Av__', 'AmE!', 'A'])
    it(`of others carry nothing (${JSON.stringify(foreign)})`, () => {
      assert.equal(carriedThinking(foreign), null);
    });
});
