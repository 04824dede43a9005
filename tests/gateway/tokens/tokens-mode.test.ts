/** Calls whose prompts are made of ids here, in every dialect, against the scripted engine: what is refused, limits, pins, stop strings, and counting. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import OpenAI from 'openai';
import type { TokenEngineKind } from '../../../src/gateway/tokens/native-request.ts';
import type { RouteRules } from '../../../src/wire/rollout/route-rules.ts';
import { serve, says, type ServingOptions } from '../../engines/server/serving.ts';
import { ChatUpstream } from '../../fakes/chat-upstream.ts';
import { bearer, call, startRelay } from '../relay-fixture.ts';
import { qwenCodec, tokensMode } from './tokens-fixture.ts';

type Json = Readonly<Record<string, unknown>>;

const hi = 'Hi there';
const tools = { name: 'run', parameters: { type: 'object', properties: {} } };
const picture = 'data:image/png;base64,AAAA';

const dialects = {
  chat: {
    path: '/chat/completions',
    body: { messages: [{ role: 'user', content: hi }] },
    picture: {
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: picture } }] }],
    },
    demand: { tools: [{ type: 'function', function: tools }], tool_choice: 'required' },
    overflow: /context_length_exceeded/,
  },
  responses: {
    path: '/responses',
    body: { input: hi },
    picture: {
      input: [{ role: 'user', content: [{ type: 'input_image', image_url: picture }] }],
    },
    demand: { tools: [{ type: 'function', ...tools }], tool_choice: 'required' },
    overflow: /context_length_exceeded/,
  },
  messages: {
    path: '/messages',
    body: { max_tokens: 4_000, messages: [{ role: 'user', content: hi }] },
    picture: {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
          ],
        },
      ],
    },
    demand: {
      tools: [{ name: 'run', input_schema: tools.parameters }],
      tool_choice: { type: 'any' },
    },
    overflow: /prompt is too long/,
  },
} as const;
type Dialect = keyof typeof dialects;
const names = Object.keys(dialects) as readonly Dialect[];

async function open(
  options: ServingOptions & { readonly kind?: TokenEngineKind; readonly rules?: RouteRules } = {},
) {
  const { kind = 'sglang', rules, ...serving } = options;
  const closing = new AsyncDisposableStack();
  const engine = closing.use(await serve(serving));
  const relay = closing.use(await startRelay({ tokens: await tokensMode(kind) }));
  const route = await relay.relay.register({
    ...{ rolloutId: 'r', upstreamUrl: `${engine.url}/v1`, upstreamKey: null },
    ...(rules !== undefined && { rules }),
  });
  const ask = async (path: string, body: Json) => {
    const { status, body: bytes } = await call(route.baseUrl + path, {
      ...{ headers: bearer(route), body: JSON.stringify({ model: 'm', ...body }) },
    });
    return { status, text: bytes.toString() };
  };
  const say = async (name: Dialect, more: Json = {}) =>
    await ask(dialects[name].path, { ...dialects[name].body, ...more });
  return { engine, route, ask, say, [Symbol.asyncDispose]: () => closing.disposeAsync() };
}

const words = (count: number): string => Array.from({ length: count }, () => 'word').join(' ');

describe('a call whose prompt is made of ids here', () => {
  it('is refused in the words of its dialect where the template or the way refuses it', async () => {
    await using opened = await open({ model: { contextTokens: 40 } });
    const { engine, say } = opened;
    for (const name of names) {
      const { picture: image, demand } = dialects[name];
      const refused = await say(name, image);
      assert.equal(refused.status, 400, refused.text);
      assert.match(refused.text, /a part of type 'image_url' is no text/);
      const demanded = await say(name, demand);
      assert.equal(demanded.status, 400, demanded.text);
      assert.match(demanded.text, /tool_choice/);
      assert.equal(engine.log().length, 0, 'the engine hears nothing of them');
    }
    for (const unkept of [{ functions: [tools] }, { continue_final_message: true }]) {
      const { status, text } = await say('chat', unkept);
      assert.equal(status, 400, text);
      assert.match(text, new RegExp(`"param":"${Object.keys(unkept).join()}"`));
    }
    const empty = { functions: [], continue_final_message: false, regex: null };
    assert.equal((await say('chat', empty)).status, 200);
    for (const name of names) {
      const long = await say(name, name === 'responses' ? { input: words(90) } : { messages: [{ role: 'user', content: words(90) }] }); // prettier-ignore
      assert.equal(long.status, 400, long.text);
      assert.match(long.text, dialects[name].overflow);
    }
  });

  for (const kind of ['sglang', 'vllm'] as const)
    it(`goes on to the end of the answer where it names no limit, and to a pinned one: ${kind}`, async () => {
      const long = words(150);
      await using opened = await open({ kind, policy: says(long) });
      for (const stream of [false, true]) {
        const { status, text } = await opened.say('chat', { stream });
        assert.equal(status, 200, text);
        assert.equal(text.split('word').length - 1, 150);
      }
      assert.ok(opened.engine.log().every(({ route }) => route === (kind === 'vllm' ? '/v1/completions' : '/generate'))); // prettier-ignore
      const rules = { pins: { max_tokens: 3 }, budgets: {} };
      await using pinned = await open({ kind, policy: says(long), rules });
      for (const name of names) assert.equal((await pinned.say(name)).status, 200);
      assert.deepEqual(pinned.engine.log().map(({ output_ids: ids }) => ids.length), [3, 3, 3]); // prettier-ignore
    });

  it('shows no stop string, and goes on behind all that was sampled', async () => {
    await using opened = await open({ policy: says('one STOP two') });
    const { engine, say } = opened;
    for (const stream of [false, true]) {
      const { text } = await say('chat', { stop: 'STOP', stream });
      const said = [...text.matchAll(/"content":"([^"]*)"/g)].map(([, piece]) => piece).join('');
      assert.equal(said, 'one ');
      assert.ok(text.includes('"finish_reason":"stop"'));
    }
    const history = [
      { role: 'user', content: hi },
      { role: 'assistant', content: 'one ' },
      { role: 'user', content: 'and?' },
    ];
    assert.equal((await say('chat', { messages: history })).status, 200);
    const [, before, after] = engine.log();
    const front = [...before!.prompt_ids, ...before!.output_ids];
    assert.deepEqual(after?.prompt_ids.slice(0, front.length), front);
    assert.ok(before?.text.includes('STOP'));
  });

  it('is counted as its prompt is made', async () => {
    await using opened = await open();
    const { engine, ask, say } = opened;
    const { body } = dialects.messages;
    const counted = await ask('/messages/count_tokens', { messages: body.messages });
    await say('messages');
    const { input_tokens: count } = JSON.parse(counted.text) as { readonly input_tokens: number };
    assert.equal(count, engine.log()[0]?.prompt_ids.length);
  });

  it('has its variables for the template, but not those that the family fixes', async () => {
    await using opened = await open();
    const { engine, say } = opened;
    const kwargs = (variables: Json): Json => ({ chat_template_kwargs: variables });
    assert.equal((await say('chat', kwargs({ enable_thinking: false }))).status, 200);
    const [entry] = engine.log();
    assert.match((await qwenCodec()).decode(Int32Array.from(entry!.prompt_ids)), /<\/think>\n\n$/);
    const fixed = await say('chat', kwargs({ clear_thinking: true }));
    assert.deepEqual([fixed.status, fixed.text.includes('clear_thinking')], [400, true]);
  });

  it('shows numbers of its tools as they are spelled', async () => {
    await using opened = await open();
    const { engine, route } = opened;
    const schema = '{"type":"object","properties":{"x":{"minimum":1.0}}}';
    const body = `{"messages":[{"role":"user","content":"a"}],"tools":[{"type":"function","function":{"name":"run","parameters":${schema}}}]}`;
    const { status } = await call(`${route.baseUrl}/chat/completions`, { headers: bearer(route), body }); // prettier-ignore
    assert.equal(status, 200);
    const [entry] = engine.log();
    const prompt = (await qwenCodec()).decode(Int32Array.from(entry!.prompt_ids));
    assert.ok(prompt.includes('"minimum": 1.0'), prompt);
  });

  it('fails where the engine does not say what it sampled', async () => {
    await using upstream = await ChatUpstream.start((response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      const meta = { finish_reason: { type: 'stop' }, prompt_tokens: 9, completion_tokens: 1 };
      response.end(JSON.stringify({ text: 'hi', meta_info: meta }));
    });
    await using relay = await startRelay({ tokens: await tokensMode('sglang') });
    const route = await relay.route('r', `${upstream.url}/v1`);
    const { status, body } = await call(`${route.baseUrl}/chat/completions`, {
      ...{ headers: bearer(route), body: JSON.stringify({ messages: [{ role: 'user', content: 'a' }] }) }, // prettier-ignore
    });
    assert.deepEqual([status, body.toString().includes('which ids it sampled')], [502, true]);
  });
});

describe('a route', () => {
  it('is relayed where its rollout says so', async () => {
    await using engine = await serve();
    await using relay = await startRelay({ tokens: await tokensMode('sglang') });
    const upstream = { upstreamUrl: `${engine.url}/v1`, upstreamKey: null };
    const route = await relay.relay.register({ rolloutId: 'r', ...upstream, mode: 'relay' });
    const body = JSON.stringify({ model: 'mock', ...dialects.chat.body });
    const headers = { ...bearer(route), 'content-type': 'application/json' };
    assert.equal((await call(`${route.baseUrl}/chat/completions`, { headers, body })).status, 200); // prettier-ignore
    assert.equal(engine.log()[0]?.route, '/v1/chat/completions');
  });

  it('is refused where there are no words for it, or no engine where its address points', async () => {
    const request = { rolloutId: 'r', upstreamUrl: 'http://127.0.0.1:9/v1', upstreamKey: null };
    await using plain = await startRelay();
    const wanted = plain.relay.register({ ...request, mode: 'tokens' });
    await assert.rejects(wanted, { code: 'CONFIG_INVALID', field: 'gateway.mode' });
    await using relay = await startRelay({ tokens: await tokensMode('sglang') });
    const elsewhere = relay.relay.register({ ...request, upstreamUrl: 'http://127.0.0.1:9/chat' });
    await assert.rejects(elsewhere, { code: 'CONFIG_INVALID', field: 'chat_completions_url' });
  });
});

it("OpenAI's package reads the same of a stream as of a whole answer", async () => {
  const toolCalls = [{ name: 'run', arguments: { command: 'ls "a b"' } }];
  const policy = () => ({ reasoning: 'hm', content: 'Look: 🙂', toolCalls });
  await using opened = await open({ policy });
  const { baseUrl: baseURL, apiKey } = opened.route;
  const { completions } = new OpenAI({ baseURL, apiKey, maxRetries: 0 }).chat;
  const asked: Pick<OpenAI.ChatCompletionCreateParams, 'model' | 'messages' | 'tools'> = {
    ...{ model: 'm', messages: [{ role: 'user', content: hi }] },
    tools: [{ type: 'function', function: tools }],
  };
  const whole = await completions.create(asked);
  const stream = completions.stream({ ...asked, stream_options: { include_usage: true } });
  const streamed = await stream.finalChatCompletion();
  const [one] = whole.choices;
  const [other] = streamed.choices;
  assert.equal(one?.finish_reason, 'tool_calls');
  assert.equal(other?.finish_reason, 'tool_calls');
  assert.equal(one.message.content, 'Look: 🙂');
  assert.equal(other.message.content, one.message.content);
  assert.deepEqual(plain(other.message.tool_calls), plain(one.message.tool_calls));
  assert.equal(one.message.tool_calls?.length, 1);
  assert.equal(streamed.usage?.completion_tokens, whole.usage?.completion_tokens);
  assert.ok(opened.engine.log().length === 2);
});

/** Without what the package adds for its own reading. */
function plain(calls: unknown): unknown {
  return (calls as readonly Json[]).map(({ id, function: called }) => {
    const { name, arguments: text } = called as Json;
    return { id, name, text };
  });
}
