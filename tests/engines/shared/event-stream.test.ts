import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import { eventDocuments, parseJson, wholeText } from '../../../src/engines/shared/event-stream.ts';

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

describe('an answer that does not end', () => {
  const at = { url: 'http://engine/v1', requestId: null, secrets: [] };
  async function* pieces(text: string, count: number): AsyncGenerator<Uint8Array> {
    for (let sent = 0; sent < count; sent += 1) yield await Promise.resolve(Buffer.from(text));
    assert.ok(count < 1000, 'it was read to its end');
  }
  const isRefused = (error: unknown): boolean => isRolloutError(error, 'ENGINE_RESPONSE_INVALID');

  it('is not held for ever, whole or as one event', async () => {
    await assert.rejects(wholeText(pieces('x'.repeat(10), 1000), at, 100), isRefused);
    const events = eventDocuments(pieces('data: xxx\n', 1000), at, 100);
    await assert.rejects(events.next(), isRefused);
  });

  it('is read when each of its events ends in time, however long it is', async () => {
    let count = 0;
    for await (const document of eventDocuments(pieces('data: 1\n\n', 500), at, 100)) {
      assert.equal(document, 1);
      count += 1;
    }
    assert.equal(count, 500);
    assert.equal(await wholeText(pieces('1', 100), at, 100), '1'.repeat(100));
  });
});
