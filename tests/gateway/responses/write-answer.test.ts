import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SentEvent } from '../../../src/gateway/dialects/dialect.ts';
import { responsesDialect } from '../../../src/gateway/dialects/responses/responses-dialect.ts';
import type { Answer, AnswerFinish } from '../../../src/gateway/items/answer.ts';
import { addedUp, comparable } from './added-up.ts';
import { head, type JsonObject } from './fixture-run.ts';
import { randomAnswer } from './random-answer.ts';

const { extra } = responsesDialect.read({
  input: 'Go.',
  include: ['reasoning.encrypted_content'],
  stream: true,
});
const writer = () => responsesDialect.writer(head, extra);

describe('answers of the Responses API', () => {
  it('are the same whole and streamed, whatever they hold', () => {
    for (let seed = 1; seed <= 300; seed += 1) {
      const { events, answer } = randomAnswer(seed);
      const streaming = writer();
      const sent: SentEvent[] = [...streaming.start()];
      for (const [index, event] of events.entries()) {
        if (index % 3 === seed % 3) sent.push(...streaming.keepAlive());
        sent.push(...streaming.write(event));
      }
      const { items, done, terminal } = addedUp(sent);
      assert.deepEqual(terminal.response, writer().whole(answer), `seed ${seed}`);
      assert.deepEqual(terminal.response['output'], done, `seed ${seed}`);
      assert.deepEqual(items.map(comparable), done.map(comparable), `seed ${seed}`);
    }
  });

  it('can be asked for whole behind their stream', () => {
    const { events, answer } = randomAnswer(7);
    const streaming = writer();
    streaming.start();
    const last = events.flatMap((event) => streaming.write(event)).at(-1);
    assert.deepEqual(streaming.whole(answer), last?.data['response']);
  });

  it('that broke off have one terminal event, and no call of them is done that was not followed by more', () => {
    for (let seed = 1; seed <= 100; seed += 1) {
      const { events } = randomAnswer(seed);
      const streaming = writer();
      const sent: SentEvent[] = [...streaming.start()];
      const cut = seed % events.length;
      const seen = events.slice(0, cut);
      for (const event of seen) sent.push(...streaming.write(event));
      sent.push(...streaming.fail(broken));
      const { done, terminal } = addedUp(sent);
      assert.equal(terminal.type, 'response.failed');
      assert.deepEqual(terminal.response['output'], done);
      const started = seen.filter(({ type }) => type === 'item-start').length;
      assert.equal(done.length, Math.max(0, started - 1), `seed ${seed}`);
    }
  });

  const finishes: readonly (readonly [AnswerFinish, string, string | null])[] = [
    ['stop', 'completed', null],
    ['stop-sequence', 'completed', null],
    ['tool-calls', 'completed', null],
    ['length', 'incomplete', 'max_output_tokens'],
    ['context', 'incomplete', 'max_output_tokens'],
    ['filter', 'incomplete', 'content_filter'],
  ];
  for (const [finish, status, reason] of finishes)
    it(`that end by ${finish} are ${status}`, () => {
      const whole = writer().whole(textAnswer(finish));
      assert.equal(whole['status'], status);
      assert.deepEqual(whole['incomplete_details'], reason === null ? null : { reason });
      const [item] = whole['output'] as JsonObject[];
      assert.equal(item?.['status'], status);
    });
});

const broken = {
  kind: 'upstream',
  status: null,
  message: 'the engine broke off',
  field: null,
  retryAfter: null,
  tokens: null,
} as const;

function textAnswer(finish: AnswerFinish): Answer {
  return { items: [{ kind: 'text', text: 'Hi' }], finish, stopSequence: null, usage: null };
}
