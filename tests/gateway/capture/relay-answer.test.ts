import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { GenerateRequest } from '../../../src/engines/engine.ts';
import type { ModelPart } from '../../../src/engines/model-call.ts';
import { ChatReader } from '../../../src/engines/shared/chat-reader.ts';
import type { HiddenFields } from '../../../src/gateway/capture/asked-fields.ts';
import { RelayAnswer } from '../../../src/gateway/capture/relay-answer.ts';
import { seededRandom } from '../../support/random.ts';

const at = { url: 'http://engine', requestId: 'r', secrets: [] };
const request: GenerateRequest = {
  ...{ requestId: 'r', model: null, isStreaming: true, wantsTokens: true },
  input: { kind: 'messages', messages: [] },
  sampling: {},
};
const everything: HiddenFields = {
  ...{ logprobs: true, tokenIds: true, metaInfo: true, sglext: true, usage: true, replay: [] },
};

const choice = (delta: object, more: object = {}): string =>
  JSON.stringify({ id: 'c', choices: [{ index: 0, delta, ...more }] });
const events = [
  ': a comment\r\n\r\n',
  `event: chunk\r\ndata: ${choice({ content: 'é😀' }, { token_ids: [1, 2] })}\r\n\r\n`,
  `data:${choice({ content: ' ' })}\n\n`,
  `data: {"id":"c",\ndata: "choices":[{"index":0,"delta":{"content":"b"}}]}\n\n`,
  `data: ${choice({}, { finish_reason: 'stop', token_ids: [3] })}\r\r`,
  'data: [DONE]\n\n',
].join('');
const shown = [
  ': a comment\r\n\r\n',
  `event: chunk\ndata: ${choice({ content: 'é😀' })}\n\n`,
  `data:${choice({ content: ' ' })}\n\n`,
  `data: {"id":"c",\ndata: "choices":[{"index":0,"delta":{"content":"b"}}]}\n\n`,
  `data: ${choice({}, { finish_reason: 'stop' })}\n\n`,
  'data: [DONE]\n\n',
].join('');

function read(pieces: readonly Buffer[], hidden: HiddenFields | null, isStream = true) {
  const parts: ModelPart[] = [];
  const answer = new RelayAnswer({
    ...{ isStream, hidden, reader: new ChatReader(request, at) },
    onPart: (part) => parts.push(part),
  });
  const passed = pieces.map((piece) => answer.push(piece));
  passed.push(answer.end());
  const last = parts.at(-1);
  return {
    passed: Buffer.concat(passed).toString(),
    problem: answer.problem,
    result: last?.type === 'end' ? last.result : null,
  };
}

function chunked(bytes: Buffer, random: () => number): readonly Buffer[] {
  const pieces: Buffer[] = [];
  for (let from = 0; from < bytes.length;) {
    const to = from + 1 + Math.floor(random() * 40);
    pieces.push(bytes.subarray(from, to));
    from = to;
  }
  return pieces;
}

describe('an answer on its way down', () => {
  it('says and shows the same however its bytes are cut', () => {
    const bytes = Buffer.from(events);
    for (let seed = 1; seed <= 300; seed += 1) {
      const pieces = chunked(bytes, seededRandom(seed));
      const hidden = read(pieces, everything);
      assert.equal(hidden.passed, shown, `seed ${seed}`);
      assert.deepEqual(hidden.result?.outputIds, [1, 2, 3]);
      assert.equal(hidden.result.text, 'é😀 b');
      assert.equal(read(pieces, null).passed, events);
    }
  });

  it('shows no payload that nobody asked for, wherever it stands, and all else of its place', () => {
    const hidden: HiddenFields = {
      ...{ logprobs: false, tokenIds: false, metaInfo: false, sglext: false, usage: false },
      replay: ['routed_experts'],
    };
    const answer = (payload: object): string =>
      JSON.stringify({
        choices: [
          {
            ...{ index: 0, message: { content: 'a' }, finish_reason: 'stop', ...payload },
            meta_info: { id: 'x', ...payload },
          },
        ],
        sglext: { input_ids: [1], ...payload },
      });
    const { passed, result } = read(
      [Buffer.from(answer({ routed_experts: 'AAAA' }))],
      hidden,
      false,
    );
    assert.equal(passed, answer({}));
    assert.equal(result?.extra['routed_experts'], 'AAAA');
  });

  it('goes on as it is when it cannot be read, and keeps what was read before', () => {
    const broken = `data: ${choice({ content: 'a' })}\n\ndata: {"no json\n\ndata: ${choice({ content: 'b' })}\n\n`;
    const open = read([Buffer.from(broken)], null);
    assert.deepEqual([open.passed, open.result], [broken, null]);
    assert.match(open.problem ?? '', /not JSON/);
    // What might hold ids is not shown.
    const hidden = read([Buffer.from(broken)], everything);
    assert.equal(hidden.passed, broken.replace('data: {"no json\n\n', ''));
  });

  it('shows nothing of an event that the end tore, where something has to be hidden', () => {
    const torn = `data: ${choice({ content: 'a' })}\n\ndata: {"choices":[{"token_ids":[7,8`;
    assert.equal(read([Buffer.from(torn)], everything).passed, `${torn.split('\n\n')[0]}\n\n`);
    assert.equal(read([Buffer.from(torn)], null).passed, torn);
  });

  it('is passed as it is when it is whole and holds nothing to hide, or is no JSON', () => {
    const whole = '{ "choices": [{"index":0,"message":{"content":"a"},"finish_reason":"stop"}] }';
    const passed = read([Buffer.from(whole)], everything, false);
    assert.deepEqual([passed.passed, passed.result?.text], [whole, 'a']);
    assert.equal(read([Buffer.from('oh no')], everything, false).passed, 'oh no');
    assert.equal(read([Buffer.from('oh no')], null, false).passed, 'oh no');
  });

  it('keeps the sign of zero of what the client asked for', () => {
    const asked = { ...everything, logprobs: false };
    const event = '{"choices":[{"index":0,"delta":{},"logprobs":{"content":[{"logprob":-0.0}]},"token_ids":[1]}]}'; // prettier-ignore
    const { passed } = read([Buffer.from(`data: ${event}\n\n`)], asked);
    assert.ok(passed.includes('"logprob":-0.0') && !passed.includes('token_ids'), passed);
  });
});
