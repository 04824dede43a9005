import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import OpenAI, { APIError } from 'openai';
import type { ResponseCreateParamsStreaming } from 'openai/resources/responses/responses';
import type { SentEvent } from '../../../src/gateway/dialects/dialect.ts';
import { responsesDialect } from '../../../src/gateway/dialects/responses/responses-dialect.ts';
import { loadCases } from '../golden.ts';
import {
  head,
  runStream,
  type ErrorCase,
  type JsonObject,
  type ResponsesCase,
  type StreamCase,
} from './fixture-run.ts';
import { randomAnswer } from './random-answer.ts';

const cases = loadCases('responses') as readonly ResponsesCase[];
const streams = cases.filter((each): each is StreamCase => each.direction === 'stream');
const errors = cases.filter((each): each is ErrorCase => each.direction === 'error');

describe("OpenAI's SDK", () => {
  it('adds every stream up to its terminal response', async () => {
    for (const each of streams) {
      const { sent } = runStream(each);
      await checkAddedUp(sent, each.body, `${each.case}: ${each.title}`);
    }
  });

  it('adds up answers of any shape', async () => {
    const body = { input: 'Go.', include: ['reasoning.encrypted_content'], stream: true };
    const { extra } = responsesDialect.read(body);
    for (let seed = 1; seed <= 60; seed += 1) {
      const writer = responsesDialect.writer(head, extra);
      const { events } = randomAnswer(seed);
      const sent = [...writer.start(), ...events.flatMap((event) => writer.write(event))];
      await checkAddedUp(sent, body, `seed ${seed}`);
    }
  });

  it('sees every event of a stream that it only reads', async () => {
    for (const each of streams) {
      const { sent } = runStream(each);
      const seen: unknown[] = [];
      const stream = await client(streamed(sent)).responses.create(asked(each.body));
      for await (const event of stream) seen.push(event);
      assert.deepEqual(seen, plain(sent.map(({ data }) => data)), `${each.case}: ${each.title}`);
    }
  });

  it('refuses a stream whose items were not added', async () => {
    const [each] = streams.filter(({ case: id }) => id === 'RS3');
    const { sent } = runStream(each!);
    const broken = sent.filter(({ event }) => event !== 'response.output_item.added');
    await assert.rejects(checkAddedUp(broken, each!.body, 'broken'), /missing output/);
  });

  it('reads status, code, field and message of every refusal', async () => {
    for (const { problem, status, answer } of errors) {
      if (problem === undefined) continue;
      const { body, headers } = responsesDialect.problem(problem, 'r1');
      const refusal = () => Promise.resolve(Response.json(body, { status, headers }));
      const call = client(refusal).responses.create(asked({ input: 'Go.' }));
      const error = await call.then(
        () => assert.fail('it was answered'),
        (reason: unknown) => reason,
      );
      assert.ok(error instanceof APIError);
      const { message, type, param, code } = answer['error'] as Record<string, string | null>;
      assert.deepEqual(
        { message: error.message, type: error.type, param: error.param, code: error.code },
        { message: `${status} ${message}`, type, param, code },
      );
      assert.equal(error.requestID, 'r1');
    }
  });
});

async function checkAddedUp(
  sent: readonly SentEvent[],
  body: JsonObject,
  what: string,
): Promise<void> {
  const stream = client(streamed(sent)).responses.stream(asked(body));
  const final = await stream.finalResponse();
  assert.deepEqual(withoutParsed(final), plain(sent.at(-1)?.data['response']), what);
}

function client(fetch: () => Promise<Response>): OpenAI {
  return new OpenAI({ apiKey: 'key', baseURL: 'http://gateway.test/v1', maxRetries: 0, fetch });
}

function streamed(sent: readonly SentEvent[]): () => Promise<Response> {
  const text = sent.map(({ event, data }) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`);
  const headers = { 'content-type': 'text/event-stream' };
  return () => Promise.resolve(new Response(text.join(''), { headers }));
}

/** The SDK's types know fewer tools than clients send. */
function asked(body: JsonObject): ResponseCreateParamsStreaming {
  return { ...body, stream: true };
}

/** Without what the SDK adds for its users. */
function withoutParsed(value: unknown): unknown {
  const added = ['output_text', 'output_parsed', 'parsed', 'parsed_arguments'];
  const text = JSON.stringify(value, (key, inner: unknown) =>
    added.includes(key) ? undefined : inner,
  );
  return JSON.parse(text) as unknown;
}

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value)) as unknown;
}
