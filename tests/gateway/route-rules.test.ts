import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CallBudgets, RouteRules } from '../../src/wire/rollout/route-rules.ts';
import { ChatUpstream, type Answer } from '../fakes/chat-upstream.ts';
import { bearer, call, startRelay, type CallAnswer } from './relay-fixture.ts';

type Json = Record<string, unknown>;

const asks = {
  chat: {
    path: '/chat/completions',
    body: { model: 'm', messages: [{ role: 'user', content: 'Hi' }] },
  },
  responses: { path: '/responses', body: { model: 'm', input: 'Hi' } },
  messages: {
    path: '/messages',
    body: { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] },
  },
} as const;
type DialectName = keyof typeof asks;
const dialectNames = Object.keys(asks) as DialectName[];

const chunk = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;

/** Two tokens, streamed or whole as asked. */
const answer: Answer = (response, { body, url }) => {
  if (url.endsWith('/tokenize')) {
    response.end('{"count":3}');
    return;
  }
  const usage = { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 };
  if ((JSON.parse(body.toString()) as Json)['stream'] !== true) {
    response.writeHead(200, { 'content-type': 'application/json' });
    const message = { role: 'assistant', content: 'Hello' };
    response.end(
      JSON.stringify({ choices: [{ index: 0, message, finish_reason: 'stop' }], usage }),
    );
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const delta = { role: 'assistant', content: 'Hello' };
  response.write(chunk({ choices: [{ index: 0, delta, finish_reason: 'stop' }] }));
  response.end(`${chunk({ choices: [], usage })}data: [DONE]\n\n`);
};

interface Routed {
  readonly upstream: ChatUpstream;
  readonly spent: () => unknown;
  readonly logged: readonly string[];
  readonly ask: (dialect: DialectName, fields?: Json) => Promise<CallAnswer>;
  readonly count: () => Promise<CallAnswer>;
}

async function withRules(
  rules: Partial<RouteRules>,
  use: (routed: Routed) => Promise<void>,
  upstreamAnswer: Answer = answer,
): Promise<void> {
  await using upstream = await ChatUpstream.start(upstreamAnswer);
  const logged: string[] = [];
  const logger = {
    log: (_level: string, message: string, fields: Json = {}) =>
      void logged.push(`${message} ${JSON.stringify(fields['note'] ?? fields['limit'] ?? '')}`),
  };
  await using running = await startRelay({ logger });
  const route = await running.relay.register({
    ...{ rolloutId: 'r', upstreamUrl: `${upstream.url}/v1`, upstreamKey: null },
    rules: { pins: {}, budgets: {}, ...rules },
  });
  const post = (path: string, body: unknown) =>
    call(`${running.url}/v1${path}`, {
      headers: { ...bearer(route), 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  await use({
    ...{ upstream, logged, spent: async () => (await running.relay.activity('r'))?.spent ?? null },
    ask: (dialect, fields = {}) => post(asks[dialect].path, { ...asks[dialect].body, ...fields }),
    count: () => post('/messages/count_tokens', asks.messages.body),
  });
}

describe('pinned sampling parameters', { timeout: 60_000 }, () => {
  const pins = {
    ...{ temperature: 0.25, top_p: null, max_tokens: 77, stop: 'END', seed: 5 },
    ...{ repetition_penalty: 1.1, reasoning_effort: 'low' },
  };
  const sent = {
    ...{ temperature: 0.25, top_p: undefined, max_tokens: 77, seed: 5 },
    ...{ repetition_penalty: 1.1, reasoning_effort: 'low' },
  };
  const given: Record<DialectName, Json> = {
    chat: { temperature: 1, top_p: 0.5, max_tokens: 5, seed: 1, reasoning_effort: 'high' },
    responses: {
      ...{ temperature: 1, top_p: 0.5, max_output_tokens: 5, seed: 1 },
      reasoning: { effort: 'high' },
    },
    messages: {
      ...{ temperature: 1, top_p: 0.5, max_tokens: 5, stop_sequences: ['A', 'B'] },
      output_config: { effort: 'high' },
    },
  };
  for (const dialect of dialectNames)
    for (const stream of [false, true])
      it(`take the place of what a client asks for, in ${dialect}${stream ? ', streamed' : ''}`, () =>
        withRules({ pins }, async ({ upstream, ask, logged }) => {
          for (const fields of [given[dialect], {}]) {
            const { status, body } = await ask(dialect, { ...fields, stream });
            assert.equal(status, 200, body.toString());
            const got = JSON.parse(upstream.received.at(-1)!.body.toString()) as Json;
            for (const [name, value] of Object.entries(sent)) assert.equal(got[name], value, name);
            assert.deepEqual([got['stop']].flat(), ['END']);
          }
          const told = logged.filter((line) => line.includes('temperature'));
          assert.equal(told.length, 1, logged.join('\n'));
          assert.match(told[0]!, /temperature is pinned for this rollout/);
        }));

  it('are what a response says of itself', () =>
    withRules({ pins }, async ({ ask }) => {
      const { body } = await ask('responses', given.responses);
      const { temperature, top_p, max_output_tokens, reasoning } = JSON.parse(
        body.toString(),
      ) as Json;
      assert.deepEqual(
        { temperature, top_p, max_output_tokens, reasoning },
        {
          ...{ temperature: 0.25, top_p: null, max_output_tokens: 77 },
          reasoning: { effort: 'low', summary: null },
        },
      );
    }));

  it('leave a body that is no JSON to be refused, and one without pins byte for byte', async () => {
    const raw = '{"messages":[],  "temperature": 1.0, "x": NaN';
    await withRules({ pins }, async ({ upstream, ask }) => {
      const { status, body } = await ask('chat', { stream: 'x' });
      assert.equal(status, 200, body.toString());
      assert.equal(upstream.received.length, 1);
    });
    for (const [rules, status, received] of [
      [pins, 400, 0],
      [{}, 200, 1],
    ] as const) {
      await using upstream = await ChatUpstream.start((response) => void response.end('{}'));
      await using running = await startRelay({ rules: { pins: rules, budgets: {} } });
      const route = await running.route('r', upstream.url);
      const got = await call(`${running.url}/v1/chat/completions`, {
        ...{ headers: bearer(route), body: raw },
      });
      assert.equal(got.status, status);
      assert.equal(upstream.received.length, received);
      if (received === 1) assert.equal(upstream.received[0]?.body.toString(), raw);
      else assert.match(got.body.toString(), /"code":"invalid_request"/);
    }
  });
});

const refusals: Readonly<Record<DialectName, readonly [number, RegExp]>> = {
  chat: [403, /"code":"BUDGET_EXHAUSTED"/],
  responses: [400, /"code":"insufficient_quota"/],
  messages: [403, /"type":"permission_error"/],
};

describe('budgets of a rollout', { timeout: 60_000 }, () => {
  const spend: readonly (readonly [CallBudgets, number, string])[] = [
    [{ max_turns: 2 }, 2, 'max_turns'],
    [{ max_requests: 2, max_turns: 9 }, 2, 'max_requests'],
    [{ max_sampled_tokens: 5 }, 3, 'max_sampled_tokens'],
    [{ max_call_tokens: 9 }, 1, 'max_call_tokens'],
  ];
  for (const [budgets, calls, limit] of spend)
    for (const dialect of dialectNames)
      it(`end with the status at which clients of ${dialect} stop, by ${limit}`, () =>
        withRules({ budgets }, async ({ upstream, ask, spent, logged }) => {
          for (let turn = 0; turn < calls; turn += 1)
            assert.equal((await ask(dialect, { stream: turn % 2 === 0 })).status, 200);
          assert.equal(await spent(), null);
          const [status, shape] = refusals[dialect];
          for (const refused of [1, 2]) {
            const got = await ask(dialect, { stream: refused === 1 });
            assert.equal(got.status, status, got.body.toString());
            assert.match(got.body.toString(), shape);
            assert.match(got.body.toString(), new RegExp(limit));
            assert.equal(((await spent()) as Json)['refused'], refused);
          }
          assert.equal(upstream.received.length, calls);
          assert.equal(((await spent()) as Json)['limit'], limit);
          assert.equal(logged.filter((line) => line.includes('used up')).length, 1);
        }));

  it('count a call as a turn only where the upstream answers, and as a request always', () =>
    withRules(
      { budgets: { max_turns: 1, max_requests: 5 } },
      async ({ ask, count, spent }) => {
        for (const dialect of dialectNames) assert.equal((await ask(dialect)).status, 500);
        assert.equal((await count()).status, 200);
        assert.equal((await ask('chat')).status, 500);
        assert.equal((await ask('chat')).status, 403);
        assert.equal((await count()).status, 403);
        assert.equal(((await spent()) as Json)['limit'], 'max_requests');
      },
      (response, { url }) => {
        if (url.endsWith('/tokenize')) response.end('{"count":3}');
        else response.writeHead(500).end('{"error":{"message":"no"}}');
      },
    ));

  it('let tokens be counted when the turns are over', () =>
    withRules({ budgets: { max_turns: 1 } }, async ({ ask, count }) => {
      assert.equal((await ask('messages')).status, 200);
      assert.equal((await ask('messages')).status, 403);
      assert.equal((await count()).status, 200);
    }));

  it('ask to wait while the last turn may still fail, and beyond the calls at a time', async () => {
    const held = Promise.withResolvers<undefined>();
    const rules = { budgets: { max_turns: 1, max_in_flight: 2 } };
    await withRules(
      rules,
      async ({ upstream, ask, spent }) => {
        const first = ask('chat');
        while (upstream.received.length === 0) await new Promise(setImmediate);
        for (const dialect of dialectNames) {
          const got = await ask(dialect);
          assert.equal(got.status, 429, got.body.toString());
          assert.equal(got.headers['retry-after'], '1');
        }
        assert.equal(await spent(), null);
        held.resolve(undefined);
        assert.equal((await first).status, 503);
        assert.equal((await ask('chat')).status, 503);
      },
      async (response) => {
        await held.promise;
        response.writeHead(503).end('{"error":{"message":"later"}}');
      },
    );
    await using upstream = await ChatUpstream.start(() => undefined);
    await using running = await startRelay({ maxCallsPerRollout: 2 });
    const route = await running.relay.register({
      ...{ rolloutId: 'r', upstreamUrl: upstream.url, upstreamKey: null },
      rules: { pins: {}, budgets: { max_in_flight: 1 } },
    });
    const url = `${running.url}/v1/chat/completions`;
    const left = new AbortController();
    const first = call(url, { headers: bearer(route), body: '{}', signal: left.signal });
    first.catch(() => undefined);
    await upstream.opened(1);
    assert.equal((await call(url, { headers: bearer(route), body: '{}' })).status, 429);
    left.abort();
  });
});
