/** What is logged is what was sent: replies that are hard to tokenise, by every route that tells ids, bit for bit. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { loadPolicy } from '../../../src/engines/mock/policy.ts';
import type { RequestLogEntry } from '../../../src/engines/server/request-log.ts';
import { serve, type Choice, type Serving } from './serving.ts';

interface Told {
  readonly ids: readonly number[];
  readonly logprobs: readonly number[];
  readonly text: string;
}

let engine: Serving;
before(async () => {
  engine = await serve({
    policy: await loadPolicy('random-text'),
    nonCanonicalShare: 0.4,
    seed: 3,
  });
});
after(() => engine[Symbol.asyncDispose]());

const perRoute = 40;
const ask = (index: number): object => ({
  messages: [{ role: 'user', content: `question ${index}` }],
  rid: `r${index}`,
  logprobs: true,
  return_token_ids: true,
  separate_reasoning: false,
});

function toldBy(choices: readonly Choice[]): Told {
  return {
    ids: choices.flatMap(({ token_ids: ids }) => ids ?? []),
    logprobs: choices.flatMap(({ logprobs }) =>
      (logprobs?.content ?? []).map(({ logprob }) => logprob),
    ),
    text: choices.map(({ delta, message }) => (delta as Choice['delta'] | undefined)?.content ?? (message as Choice['message'] | undefined)?.content ?? '').join(''), // prettier-ignore
  };
}

const routes: readonly [title: string, read: (index: number) => Promise<Told>][] = [
  [
    'chat, whole',
    async (index) => toldBy((await engine.json('/v1/chat/completions', ask(index))).choices),
  ],
  [
    'chat, streaming',
    async (index) => {
      const events = await engine.events('/v1/chat/completions', ask(index));
      return toldBy(events.flatMap(({ choices }) => choices));
    },
  ],
  ...([false, true] as const).map((isStreaming): (typeof routes)[number] => [
    `/generate, ${isStreaming ? 'streaming' : 'whole'}`,
    async (index) => {
      const messages = [{ role: 'user', content: `question ${index}` }] as const;
      const body = {
        input_ids: engine.model.render({ messages, tools: [] }),
        rid: `r${index}`,
        return_logprob: true,
        sampling_params: { max_new_tokens: 5000 },
      };
      const answer = isStreaming
        ? (await engine.events('/generate', body)).at(-1)!
        : await engine.json('/generate', body);
      return {
        ids: answer.meta_info.output_token_logprobs.map(([, id]) => id),
        logprobs: answer.meta_info.output_token_logprobs.map(([logprob]) => logprob!),
        text: answer.text,
      };
    },
  ]),
];

describe('the log and the client', () => {
  for (const [place, [title, read]] of routes.entries())
    it(`say the same about every token: ${title}`, async () => {
      const indices = Array.from({ length: perRoute }, (_, index) => place * perRoute + index);
      const told = await Promise.all(indices.map(read));
      const lines = new Map(engine.log().map((line) => [line.request_id, line]));
      for (const [offset, { ids, logprobs, text }] of told.entries()) {
        const line: RequestLogEntry = lines.get(`r${indices[offset]!}`)!;
        assert.deepEqual(ids, line.output_ids);
        assert.equal(logprobs.length, ids.length);
        assert.ok(logprobs.every((value, index) => Object.is(value, line.logprobs[index])));
        assert.equal(text, line.text);
        assert.equal(line.sent_ids, ids.length);
      }
    });

  it('a reply is marked canonical exactly when encoding its text gives its ids', () => {
    const { vocabulary } = engine;
    const lines = engine.log();
    assert.equal(lines.length, routes.length * perRoute);
    for (const { text, output_ids: ids, canonical } of lines) {
      const encoded = [...vocabulary.encode(text, { parsesSpecial: true }), vocabulary.endId];
      assert.equal(canonical, encoded.join() === ids.join());
    }
    const others = lines.filter(({ canonical }) => !canonical).length;
    assert.ok(others > lines.length * 0.3, `${others} of ${lines.length}`);
    assert.ok(others < lines.length, 'no reply was canonical');
    assert.ok(lines.some(({ logprobs }) => logprobs.some((value) => Object.is(value, -0))));
  });
});
