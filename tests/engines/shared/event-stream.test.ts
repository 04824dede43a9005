import assert from 'node:assert/strict';
import { it } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import { parseJson } from '../../../src/engines/shared/event-stream.ts';

it('an answer that is not JSON is shown by its beginning, without half a key and half a character', () => {
  const at = { url: 'http://engine/v1', requestId: null, secrets: ['sk-0123456789'] };
  const shown = (text: string): string => {
    try {
      parseJson(text, at);
    } catch (error) {
      assert.ok(isRolloutError(error, 'ENGINE_RESPONSE_INVALID'));
      return error.message;
    }
    throw new Error('it is JSON');
  };
  for (let length = 60; length < 85; length += 1) {
    assert.doesNotMatch(shown(`${'x'.repeat(length)}sk-0123456789`), /sk-/);
    assert.doesNotMatch(shown(`${'x'.repeat(length)}👍👍👍`), /\\ud83d/);
  }
});
