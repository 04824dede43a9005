/** What the vendors' Python packages make of the gateway before the scripted engine: each dialect, streamed and whole, and its failures. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Policy } from '../../src/engines/mock/policy.ts';
import type { ModelRoute } from '../../src/wire/rollout/model-route.ts';
import { serve, type Serving } from '../engines/server/serving.ts';
import { startRelay, type RunningRelay } from '../gateway/relay-fixture.ts';
import { playFixtures } from './python-fixtures.ts';
import { ModelClients, type ClientAnswer, type ClientRequest } from '../support/model-clients.ts';

type Json = Readonly<Record<string, unknown>>;
type DialectName = ClientRequest['dialect'];

const calls = [
  { name: 'look', arguments: { place: 'harbour-café' } },
  { name: 'look', arguments: { place: 'second 🙂' } },
];

/** Thinks, says something, and calls twice where it has tools. */
const policy: Policy = ({ tools, messages }) => ({
  content: JSON.stringify(messages.at(-1)?.content ?? '').includes('long')
    ? 'word '.repeat(400)
    : 'Hello, 世界!',
  reasoning: 'Let me think.',
  ...(tools.length > 0 && { toolCalls: calls }),
});

const parameters = { type: 'object', properties: { place: { type: 'string' } } };
const words: Readonly<Record<DialectName, (text: string) => Json>> = {
  chat: (text) => ({ messages: [{ role: 'user', content: text }] }),
  responses: (text) => ({ input: text }),
  messages: (text) => ({ max_tokens: 1_000, messages: [{ role: 'user', content: text }] }),
};
const tools: Readonly<Record<DialectName, Json>> = {
  chat: { tools: [{ type: 'function', function: { name: 'look', parameters } }] },
  responses: { tools: [{ type: 'function', name: 'look', parameters, strict: false }] },
  messages: { tools: [{ name: 'look', input_schema: parameters }] },
};
const dialectNames: readonly DialectName[] = ['chat', 'responses', 'messages'];

interface Heard {
  readonly text: string;
  readonly thought: string;
  readonly calls: readonly (readonly [string, unknown])[];
}

const parsed = (text: unknown): unknown => JSON.parse(String(text));
const list = (value: unknown): readonly Json[] => (value ?? []) as readonly Json[];

const heardOf: Readonly<Record<DialectName, (result: Json) => Heard>> = {
  chat(result) {
    const message = list(result['choices'])[0]!['message'] as Json;
    return {
      text: String(message['content']),
      thought: String(message['reasoning_content']),
      calls: list(message['tool_calls']).map((call) => {
        const { name, arguments: given } = call['function'] as Json;
        return [String(name), parsed(given)];
      }),
    };
  },
  responses(result) {
    const of = (type: string) => list(result['output']).filter((item) => item['type'] === type);
    const textIn = (item: Json, field: string) =>
      list(item[field])
        .map((part) => String(part['text']))
        .join('');
    return {
      text: of('message')
        .map((item) => textIn(item, 'content'))
        .join(''),
      thought: of('reasoning')
        .map((item) => textIn(item, 'summary'))
        .join(''),
      calls: of('function_call').map((item) => [String(item['name']), parsed(item['arguments'])]),
    };
  },
  messages(result) {
    const of = (type: string) => list(result['content']).filter((block) => block['type'] === type);
    return {
      text: of('text')
        .map((block) => String(block['text']))
        .join(''),
      thought: of('thinking')
        .map((block) => String(block['thinking']))
        .join(''),
      calls: of('tool_use').map((block) => [String(block['name']), block['input']]),
    };
  },
};

/** Of a stream: begun, and ended. */
const borders: Readonly<Record<DialectName, readonly [string, string]>> = {
  chat: ['chunk', 'chunk'],
  responses: ['response.created', 'response.completed'],
  messages: ['message_start', 'message_stop'],
};

describe('the Python packages openai and anthropic', { timeout: 120_000 }, () => {
  let clients: ModelClients;
  let engine: Serving;
  let gateway: RunningRelay;
  let route: ModelRoute;

  before(async () => {
    engine = await serve({
      ...{ policy, nonCanonicalShare: 0.5, contextTokens: 2_000 },
      faults: [
        { match: { promptContains: 'FAIL' }, fault: 'status-500' },
        { match: { promptContains: 'BUSY' }, fault: 'overload', status: 429 },
        { match: { promptContains: 'CUT' }, fault: 'reset', afterTokens: 2 },
      ],
    });
    gateway = await startRelay();
    route = await gateway.route('r1', `${engine.url}/v1`, null);
    clients = await ModelClients.start();
  });

  after(async () => {
    await clients[Symbol.asyncDispose]();
    await gateway[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });

  const ask = (
    dialect: DialectName,
    params: Json,
    more: { readonly stream?: boolean; readonly key?: string } = {},
  ): Promise<ClientAnswer> =>
    clients.ask({
      ...{ dialect, url: gateway.url, key: route.apiKey, stream: false, ...more },
      params: { model: 'mock', ...params },
    });

  for (const dialect of dialectNames)
    for (const stream of [false, true]) {
      const how = `${dialect}, ${stream ? 'streamed' : 'whole'}`;
      it(`read text and thoughts of ${how}`, async () => {
        const { result, events, error } = await ask(dialect, words[dialect]('Hi'), { stream });
        assert.equal(error, null);
        assert.deepEqual(heardOf[dialect](result!), {
          ...{ text: 'Hello, 世界!', thought: 'Let me think.', calls: [] },
        });
        if (!stream) return;
        const [begun, ended] = borders[dialect];
        assert.equal(events[0], begun);
        assert.ok(events.includes(ended), events.join(' '));
      });

      it(`read parallel calls of ${how}`, async () => {
        const params = { ...words[dialect]('Hi'), ...tools[dialect] };
        const { result, error } = await ask(dialect, params, { stream });
        assert.equal(error, null);
        const heard = heardOf[dialect](result!).calls;
        assert.deepEqual(
          heard,
          calls.map((call) => [call.name, call.arguments]),
        );
      });
    }

  for (const dialect of ['messages', 'responses'] as const)
    it(`read fixtures of ${dialect} as they are meant (all of them: npm run prove -- dialects)`, async () => {
      const { played, read } = await playFixtures(dialect, clients, 5);
      assert.ok(read >= 8 && played >= read, `${read} of ${played}`);
    });

  const failures: readonly (readonly [
    string,
    (dialect: DialectName) => Json,
    Readonly<Record<DialectName, readonly [type: string, status: number]>>,
  ])[] = [
    [
      'an engine that fails',
      (dialect) => words[dialect]('FAIL'),
      {
        chat: ['InternalServerError', 500],
        responses: ['InternalServerError', 500],
        messages: ['InternalServerError', 500],
      },
    ],
    [
      'an engine that is busy',
      (dialect) => words[dialect]('BUSY'),
      {
        chat: ['RateLimitError', 429],
        responses: ['RateLimitError', 429],
        messages: ['RateLimitError', 429],
      },
    ],
    [
      'a prompt that is too long',
      (dialect) => words[dialect]('far too long '.repeat(2_000)),
      {
        chat: ['BadRequestError', 400],
        responses: ['BadRequestError', 400],
        messages: ['BadRequestError', 400],
      },
    ],
  ];
  for (const [what, paramsOf, expected] of failures)
    for (const dialect of dialectNames)
      it(`raise the right error for ${what}, in ${dialect}`, async () => {
        for (const stream of [false, true]) {
          const { error } = await ask(dialect, paramsOf(dialect), { stream });
          assert.ok(error !== null);
          assert.deepEqual([error.type, error.status], expected[dialect], error.message);
        }
      });

  /** The helper of `responses` raises nothing of its own for a response that failed: it says that it was not completed. */
  const brokenOff = {
    ...{ chat: 'APIConnectionError', responses: 'RuntimeError', messages: 'APIStatusError' },
  };
  const deadKeys = {
    chat: ['AuthenticationError', 401],
    responses: ['BadRequestError', 400],
    messages: ['PermissionDeniedError', 403],
  } as const;
  for (const dialect of dialectNames) {
    it(`raise the right error for a key that is dead, in ${dialect}`, async () => {
      const { error } = await ask(dialect, words[dialect]('Hi'), { key: 'sk-slipway-dead' });
      assert.deepEqual([error?.type, error?.status], deadKeys[dialect]);
    });

    it(`raise an error for a stream that breaks off, in ${dialect}`, async () => {
      const { error, events } = await ask(dialect, words[dialect]('CUT'), { stream: true });
      assert.equal(error?.type, brokenOff[dialect], error?.message);
      if (dialect === 'responses') assert.equal(events.at(-1), 'response.failed');
    });
  }

  it('stop where a budget is used up, without another try', async () => {
    const budgets = { max_turns: 1 };
    const spent = await gateway.relay.register({
      ...{ rolloutId: 'spent', upstreamUrl: `${engine.url}/v1`, upstreamKey: null },
      rules: { pins: {}, budgets },
    });
    assert.equal((await ask('chat', words.chat('Hi'), { key: spent.apiKey })).error, null);
    const kinds = {
      chat: ['PermissionDeniedError', 403],
      responses: ['BadRequestError', 400],
      messages: ['PermissionDeniedError', 403],
    } as const;
    for (const [tries, dialect] of dialectNames.entries()) {
      const { error } = await clients.ask({
        ...{ dialect, url: gateway.url, key: spent.apiKey, stream: false, retries: 3 },
        params: { model: 'mock', ...words[dialect]('Hi') },
      });
      assert.deepEqual([error?.type, error?.status], kinds[dialect]);
      assert.equal((await gateway.relay.activity('spent'))?.spent?.refused, tries + 1);
    }
  });
});
