import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RequestProblem } from '../../../src/gateway/dialects/dialect.ts';
import { countTokensDialect } from '../../../src/gateway/dialects/messages/count-tokens.ts';
import { messagesDialect } from '../../../src/gateway/dialects/messages/messages-dialect.ts';

const asked = { model: 'mock-model', messages: [{ role: 'user', content: 'Go.' }] };
const begun = { messages: [...asked.messages, { role: 'assistant', content: 'I' }] };

describe('a request in the dialect messages', () => {
  for (const [stream, isStreaming] of [[true, true] as const, [false, false], [undefined, false]])
    it(`is streamed: ${isStreaming}, where it says ${stream}`, () => {
      const { conversation } = messagesDialect.read({ ...asked, stream });
      assert.equal(conversation.isStreaming, isStreaming);
    });

  for (const [display, showsThinking] of [
    [undefined, true] as const,
    ['summarized', true],
    ['updates', true],
    ['omitted', false],
  ])
    it(`shows thinking: ${showsThinking}, where the display is ${display}`, () => {
      const { extra } = messagesDialect.read({ ...asked, thinking: { type: 'adaptive', display } });
      assert.deepEqual(extra, { showsThinking });
    });

  it('that is only counted may end with the assistant, and is never streamed', () => {
    assert.throws(() => messagesDialect.read(begun), RequestProblem);
    const { items, isStreaming } = countTokensDialect.read({ ...begun, stream: true }).conversation;
    assert.equal(items.length, 2);
    assert.equal(isStreaming, false);
  });
});

describe('an answer in the dialect messages', () => {
  it('starts once, however often it is told to, and has no sign of life outside of it', () => {
    const head = { requestId: 'r', model: 'mock-model', createdAt: new Date(0) };
    const writer = messagesDialect.writer(head, { showsThinking: true });
    const answer = { items: [], finish: 'stop', stopSequence: null, usage: null } as const;
    assert.deepEqual(writer.keepAlive(), []);
    const sent = [writer.start(), writer.start(), writer.write({ type: 'end', answer })].flat();
    assert.deepEqual(
      sent.map(({ event }) => event),
      ['message_start', 'message_delta', 'message_stop'],
    );
    assert.deepEqual(writer.keepAlive(), []);
    assert.deepEqual(writer.write({ type: 'end', answer }), []);
  });
});
