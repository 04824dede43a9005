/** What is logged is what was sent: replies that are hard to tokenise, by every route that tells ids, bit for bit. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { loadPolicy } from '../../../src/engines/mock/policy.ts';
import type { RequestLogEntry } from '../../../src/engines/server/request-log.ts';
import { gate, hi, says, serve, until, type Answer, type Choice, type Serving } from './serving.ts'; // prettier-ignore

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

describe('what was sent', () => {
  const words = Array.from({ length: 40 }, (_, index) => `w${index}`).join(' ');
  const always = { match: {} } as const;

  // More than are ready at once, fewer, none, and all of a reply that ends without an end token.
  for (const afterTokens of [0, 3, 9, 70, 1000])
    it(`of a native stream that ends after ${afterTokens} tokens is what its last event repeats`, async () => {
      await using engine = await serve({
        policy: says(words),
        faults: [{ ...always, fault: 'truncate-body', afterTokens }],
      });
      const body = { text: 'hi', stream: true, sampling_params: { max_new_tokens: 80 } };
      const text = await (await engine.post('/generate', body)).text();
      const last = text.trimEnd().split('\n\n').at(-1)!.slice('data: '.length);
      const seen = last === '' ? [] : (JSON.parse(last) as Answer).output_ids;
      const [line] = engine.log();
      assert.equal(seen.length, Math.min(afterTokens, 80));
      assert.equal(line!.sent_ids, seen.length);
      assert.deepEqual(seen, line!.output_ids.slice(0, seen.length));
    });

  it('of a batch is all or nothing: a client that leaves before the last one ends gets none', async () => {
    const slow = gate('late');
    await using engine = await serve({
      policy: (request) =>
        request.messages[0]!.content === 'fast' ? { content: 'early' } : slow.policy(request),
    });
    const controller = new AbortController();
    const asked = engine.post(
      '/generate',
      { text: ['fast', 'slow'] },
      { signal: controller.signal },
    );
    const failed = assert.rejects(asked);
    await until(() => slow.waiting() === 1, 'one of two runs');
    controller.abort();
    await failed;
    await until(() => engine.log().length === 2, 'both have their lines');
    assert.deepEqual(engine.log().map((line) => line.sent_ids), [0, 0]); // prettier-ignore
  });

  it('of a batch that stalls for a while is all', async () => {
    await using engine = await serve({ faults: [{ ...always, fault: 'stall', ms: 1 }] });
    const answers = await engine.json<Answer[]>('/generate', { text: ['one', 'two'] });
    assert.deepEqual(
      engine.log().map((line) => line.sent_ids),
      answers.map((answer) => answer.output_ids.length),
    );
  });

  it('of a batch with a sequence that fails is nothing, and each has its line', async () => {
    await using engine = await serve({ faults: [{ match: { nth: 2 }, fault: 'status-500' }] });
    assert.equal((await engine.post('/generate', { text: ['a', 'b', 'c'] })).status, 500);
    assert.deepEqual(engine.log().map((line) => line.sent_ids), [0, 0, 0]); // prettier-ignore
  });
});

it('a prompt that is only scored has a line also when it does not fit', async () => {
  await using engine = await serve({ contextTokens: 10 });
  const body = { input_ids: Array(20).fill(5), sampling_params: { max_new_tokens: 0 } };
  assert.equal((await engine.post('/generate', body)).status, 400);
  assert.match(engine.log()[0]!.error!, /context length/);
});

it('a request may have a name that no header can hold', { timeout: 20_000 }, async () => {
  await using engine = await serve();
  const body = { ...hi, rid: '日本\r\n' };
  assert.equal((await engine.json('/v1/chat/completions', body)).id, body.rid);
  assert.equal((await engine.events('/v1/chat/completions', body))[0]!.id, body.rid);
  assert.ok(engine.log().every((line) => line.request_id === body.rid));
});

it('a large batch puts no warning on the console', async () => {
  const warnings: string[] = [];
  const note = (warning: Error): unknown => warnings.push(warning.message);
  process.on('warning', note);
  try {
    await using engine = await serve();
    await engine.json('/generate', { text: Array(20).fill('hi') });
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off('warning', note);
  }
  assert.deepEqual(warnings, []);
});
