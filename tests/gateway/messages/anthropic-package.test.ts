import assert from 'node:assert/strict';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { loadCases } from '../golden.ts';
import type { ErrorCase, MessagesCase, StreamCase, WholeCase } from './messages-case.ts';

const cases = loadCases('messages') as readonly MessagesCase[];
const streams = cases.filter((each): each is StreamCase => each.direction === 'stream');
const wholes = cases.filter((each): each is WholeCase => each.direction === 'whole');
const errors = cases.filter((each): each is ErrorCase => each.direction === 'error');

const question: Anthropic.MessageCreateParamsNonStreaming = {
  ...{ model: 'mock-model', max_tokens: 16 },
  messages: [{ role: 'user', content: 'Go.' }],
};

/** Truncated arguments are the one thing that the package shows as it likes: as much of the object as came. */
const isCut = ({ case: id }: StreamCase): boolean => id === 'MS26' || id === 'MS14';

describe('the package @anthropic-ai/sdk', () => {
  let server: Server;
  let answer: (response: ServerResponse) => void;
  let requests = 0;
  let client: Anthropic;

  before(async () => {
    server = createServer((request: IncomingMessage, response) => {
      requests += 1;
      request.resume().on('end', () => answer(response));
    });
    // A machine that stands still for seconds must not find its connection closed.
    server.keepAliveTimeout = 0;
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    client = new Anthropic({ baseURL: `http://127.0.0.1:${port}`, apiKey: 'key', maxRetries: 0 });
  });

  after(() => {
    server.closeAllConnections();
    server.close();
  });

  for (const each of streams.filter((given) => given.message !== null && !isCut(given)))
    it(`makes the whole message of the events of ${each.case}: ${each.title}`, async () => {
      answer = (response) => sendEvents(response, each.events);
      const seen: string[] = [];
      const stream = client.messages.stream(question).on('streamEvent', ({ type }) => {
        seen.push(type);
      });
      assert.deepEqual(plain(await stream.finalMessage()), each.message);
      assert.deepEqual(
        seen,
        each.events.map(([event]) => event).filter((event) => event !== 'ping'),
      );
    });

  for (const each of streams.filter((given) => given.message === null))
    it(`throws where a stream breaks off (${each.case}: ${each.title})`, async () => {
      answer = (response) => sendEvents(response, each.events);
      const failure = client.messages.stream(question).finalMessage();
      await assert.rejects(failure, (error) => {
        assert.ok(error instanceof Anthropic.APIError);
        assert.deepEqual(error.error, each.events.at(-1)![1]);
        return true;
      });
    });

  for (const each of wholes)
    it(`takes the whole message of ${each.case}: ${each.title}`, async () => {
      answer = (response) => sendJson(response, 200, each.message);
      assert.deepEqual(plain(await client.messages.create(question)), each.message);
    });

  for (const each of errors)
    it(`reads the error of ${each.case}: ${each.title}`, async () => {
      answer = (response) => sendJson(response, each.status, each.body, each.headers);
      requests = 0;
      const isFinal = each.headers['x-should-retry'] === 'false';
      const call = client.messages.create(question, { maxRetries: isFinal ? 3 : 0 });
      await assert.rejects(call, (error) => {
        assert.ok(error instanceof Anthropic.APIError);
        assert.equal(error.status, each.status);
        assert.deepEqual(error.error, each.body);
        assert.equal(error.requestID, 'req1');
        return true;
      });
      assert.equal(requests, 1);
    });

  it('yields nothing of events without names', async () => {
    const given = streams.find(({ message }) => message !== null)!;
    answer = (response) => sendEvents(response, given.events, { hasNames: false });
    await assert.rejects(client.messages.stream(question).finalMessage());
  });
});

function sendEvents(
  response: ServerResponse,
  events: StreamCase['events'],
  { hasNames = true }: { readonly hasNames?: boolean } = {},
): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (const [event, data] of events)
    response.write(`${hasNames ? `event: ${event}\n` : ''}data: ${JSON.stringify(data)}\n\n`);
  response.end();
}

function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: ErrorCase['headers'] = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...(headers as object) });
  response.end(JSON.stringify(body));
}

/** Without what the package adds of its own. */
function plain(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, each: unknown) => (key === 'parsed_output' ? undefined : each)),
  );
}
