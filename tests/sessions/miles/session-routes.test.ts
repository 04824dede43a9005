import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { OpenAI } from 'openai';
import { bytesOf, toyCodec, toyIds } from './toy-codec.ts';
import {
  result,
  said,
  SessionFixture,
  turnAnswer,
  user,
  type TurnScript,
} from './session-fixture.ts';

const chatPath = (id: string): string => `/sessions/${id}/v1/chat/completions`;
const errorText = (message: string): string => JSON.stringify({ error: message });

describe('the session routes', () => {
  it('make, show and delete sessions with the bytes that clients know', async () => {
    await using fixture = await SessionFixture.start();
    const made = await fixture.call('POST', '/sessions', { raw: 'not json, and nobody minds' });
    assert.equal(made.status, 200);
    assert.match(made.text, /^\{"session_id":"[0-9a-f]{32}"\}$/);
    const id = String(made.json['session_id']);
    const shown = await fixture.call('GET', `/sessions/${id}`);
    assert.equal(
      shown.text,
      `{"session_id":"${id}","records":[],"metadata":{"accumulated_token_ids":[],"max_trim_tokens":0}}`,
    );
    const deleted = await fixture.call('DELETE', `/sessions/${id}`);
    assert.deepEqual([deleted.status, deleted.text], [204, '']);
    for (const [method, path] of [
      ['DELETE', `/sessions/${id}`],
      ['GET', `/sessions/${id}`],
      ['POST', `/sessions/${id}/samples`],
      ['POST', chatPath(id)],
    ] as const) {
      const gone = await fixture.call(method, path);
      assert.equal(gone.status, 404, path);
      assert.equal(gone.text, errorText(`session not found: session_id=${id}`));
    }
    assert.match(fixture.server.instanceId, /^[0-9a-f]{32}$/);
  });

  it('send a turn to the engine with ids, and record it as it went', async () => {
    await using fixture = await SessionFixture.start();
    const id = await fixture.newSession();
    const answer = await fixture.call('POST', `${chatPath(id)}?tenant=a%2Fb`, {
      headers: {
        authorization: 'Bearer of-the-engine',
        'x-agent': 'one',
        connection: 'keep-alive',
      },
      raw: '{"model":"toy","temperature":1.0,"seed":9007199254740993,"messages":[{"role":"user","content":"hé"}],"stream_options":{},"input_ids":[1],"logprobs":false}',
    });
    assert.equal(answer.status, 200);
    const [sent] = fixture.engine.requests;
    const promptIds = [toyIds.user, ...bytesOf('hé'), toyIds.end, 10, toyIds.assistant];
    assert.equal(
      sent?.text,
      `{"messages":[{"role":"user","content":"hé"}],"model":"toy","temperature":1.0,"seed":9007199254740993,"logprobs":true,"return_meta_info":true,"no_stop_trim":false,"input_ids":[${promptIds.join(',')}]}`,
    );
    assert.equal(sent.url, '/v1/chat/completions?tenant=a%2Fb');
    assert.deepEqual(
      [sent.headers['x-smg-routing-key'], sent.headers.authorization, sent.headers['x-agent']],
      [id, 'Bearer of-the-engine', 'one'],
    );
    const shown = await fixture.call('GET', `/sessions/${id}`);
    const held = [...promptIds, ...bytesOf('ok'), toyIds.end];
    assert.equal(
      shown.text,
      `{"session_id":"${id}","records":[{"timestamp":1700000002,"request_timestamp":1700000001,"method":"POST","path":"/v1/chat/completions","request":${sent.text},"response":${turnAnswer().body},"status_code":200}],"metadata":{"tito_session_mismatch":[],"accumulated_token_ids":[${held.join(',')}],"max_trim_tokens":0}}`,
    );
  });

  it('are accumulated by the OpenAI SDK when they are streamed', async () => {
    await using fixture = await SessionFixture.start();
    const call = { id: 'c1', type: 'function', function: { name: 'run', arguments: '{"a":1}' } };
    fixture.engine.says({ text: 'ok', finish: 'tool_calls', message: { tool_calls: [call] } });
    const id = await fixture.newSession();
    const client = new OpenAI({ apiKey: 'none', baseURL: `${fixture.url}/sessions/${id}/v1` });
    const stream = client.chat.completions.stream({
      ...{ model: 'toy', messages: [{ role: 'user', content: 'a' }] },
    });
    const { choices, usage } = await stream.finalChatCompletion();
    assert.equal(choices[0]?.message.content, 'ok');
    assert.equal(choices[0].finish_reason, 'tool_calls');
    const [own] = choices[0].message.tool_calls ?? [];
    assert.deepEqual(
      { ...own, index: undefined },
      { ...call, index: undefined, function: own?.type === 'function' ? own.function : null },
    );
    assert.equal(own?.type === 'function' ? own.function.arguments : '', '{"a":1}');
    assert.equal(usage?.prompt_tokens, 7);
  });

  it('answer with one server and one date header, and without replay payloads, which the record keeps', async () => {
    await using fixture = await SessionFixture.start();
    const meta = { routed_experts: 'AAAA', indexer_topk: 'BBBB', indexer_topk_num_layers: 2 };
    fixture.engine.says({ meta, logprobs: [-0.5, -0, -1e-7] });
    const id = await fixture.newSession();
    const answer = await fixture.chat(id, [user('a')]);
    assert.equal(answer.headers.get('server'), 'slipway');
    assert.match(answer.headers.get('date') ?? '', /^\w{3}, \d\d \w{3} \d{4} [\d:]{8} GMT$/);
    assert.equal(answer.headers.get('x-engine'), 'toy');
    assert.ok(!answer.text.includes('AAAA') && !answer.text.includes('BBBB'));
    assert.ok(answer.text.includes('"indexer_topk_num_layers":2'));
    const { text } = await fixture.call('GET', `/sessions/${id}`);
    assert.ok(text.includes('"routed_experts":"AAAA"') && text.includes('"indexer_topk":"BBBB"'));
  });

  for (const { title, raw, message } of [
    { title: 'a body that is no JSON', raw: '{"messages":', message: /^invalid JSON body: / },
    {
      title: 'a body that is no object',
      raw: '[1]',
      message: /^the request body must be a JSON object$/,
    },
    {
      title: 'messages that are no list',
      raw: '{"messages":{}}',
      message: /^messages must be a list$/,
    },
    {
      title: 'a message without a role',
      raw: '{"messages":[{"content":"a"}]}',
      message: /^messages\.0 must be an object with a role$/,
    },
    {
      title: 'tools that are none',
      raw: '{"messages":[],"tools":"all"}',
      message: /^tools must be a list of objects$/,
    },
    {
      title: 'variables that are no object',
      raw: '{"messages":[],"chat_template_kwargs":[]}',
      message: /^chat_template_kwargs must be an object$/,
    },
    {
      title: 'a variable that the family fixes',
      raw: '{"messages":[],"chat_template_kwargs":{"clear_thinking":true}}',
      message: /^chat_template_kwargs\.clear_thinking is fixed to false/,
    },
    {
      title: 'a conversation that the template refuses',
      raw: '{"messages":[{"role":"developer","content":"a"}]}',
      message: /^Unexpected message role\.$/,
    },
  ] as const)
    it(`refuse ${title} with 400, and the engine hears nothing of it`, async () => {
      const codec = toyCodec({ fixedVariables: { clear_thinking: false } });
      await using fixture = await SessionFixture.start({ codec });
      const answer = await fixture.call('POST', chatPath(await fixture.newSession()), { raw });
      assert.equal(answer.status, 400);
      assert.deepEqual(Object.keys(answer.json), ['error']);
      assert.match(String(answer.json['error']), message);
      assert.equal(fixture.engine.requests.length, 0);
    });

  it('tell the engine the variables as the family says them', async () => {
    const codec = toyCodec({ engineVariables: (given) => ({ ...given, thinking: true }) });
    await using fixture = await SessionFixture.start({ codec });
    const id = await fixture.newSession();
    await fixture.chat(id, [user('a')], { chat_template_kwargs: { depth: 1 } });
    const { chat_template_kwargs: told } = fixture.engine.body(0);
    assert.deepEqual(told, { depth: 1, thinking: true });
  });

  for (const { title, turn, message } of [
    { title: 'no choice', turn: { reply: { choices: [] } }, message: /without a choice/ },
    { title: 'no meta_info', turn: { choice: { meta_info: undefined } }, message: /no meta_info/ },
    {
      title: 'no log-probabilities',
      turn: { meta: { output_token_logprobs: undefined } },
      message: /no output_token_logprobs/,
    },
    { title: 'null content', turn: { message: { content: null } }, message: /null content/ },
    {
      title: 'no count of its tokens',
      turn: { meta: { completion_tokens: undefined } },
      message: /no completion_tokens/,
    },
    {
      title: 'another count of tokens',
      turn: { meta: { completion_tokens: 9 } },
      message: /has 3 entries, completion_tokens is 9/,
    },
    {
      title: 'an id that is none',
      turn: { ids: [1.5] },
      message: /is not a log-probability and a token id/,
    },
  ] as readonly { title: string; turn: TurnScript; message: RegExp }[])
    it(`answer 502 where the engine answers with ${title}, and record nothing`, async () => {
      await using fixture = await SessionFixture.start();
      fixture.engine.says(turn);
      const id = await fixture.newSession();
      const answer = await fixture.chat(id, [user('a')]);
      assert.equal(answer.status, 502);
      assert.match(String(answer.json['error']), message);
      assert.deepEqual((await fixture.view(id)).records, []);
    });

  it('answer 502 where the engine answers something other than JSON, or not at all', async () => {
    await using fixture = await SessionFixture.start();
    fixture.engine.script = () => ({ body: '{"choices": NaN}' });
    const id = await fixture.newSession();
    assert.equal((await fixture.chat(id, [user('a')])).status, 502);
    await using alone = await SessionFixture.start({ engineUrl: 'http://127.0.0.1:9' });
    const answer = await alone.chat(await alone.newSession(), [user('a')]);
    assert.equal(answer.status, 502);
    assert.match(String(answer.json['error']), /^backend transport error: \w+: .+/);
  });

  it('pass refusals of the engine on unrecorded, JSON without white space and all else as it is', async () => {
    await using fixture = await SessionFixture.start();
    const id = await fixture.newSession();
    fixture.engine.script = () => ({ status: 400, body: '{ "message": "zu lang – é" }' });
    const refused = await fixture.chat(id, [user('a')]);
    assert.deepEqual([refused.status, refused.text], [400, '{"message":"zu lang – é"}']);
    fixture.engine.script = () => ({ status: 503, body: 'down  for\nmaintenance' });
    const down = await fixture.chat(id, [user('a')]);
    assert.deepEqual([down.status, down.text], [503, 'down  for\nmaintenance']);
    fixture.engine.says({});
    assert.equal((await fixture.chat(id, [user('another')])).status, 200);
    assert.equal((await fixture.view(id)).records.length, 1);
  });

  it('stream a turn as one chunk, and errors before it as JSON', async () => {
    await using fixture = await SessionFixture.start();
    const call = { id: 'c1', type: 'function', function: { name: 'ls', arguments: '{"p":1.0}' } };
    const message = { content: '', reasoning_content: 'hm', tool_calls: [call] };
    fixture.engine.says({ message, finish: 'tool_calls' });
    const id = await fixture.newSession();
    const answer = await fixture.chat(id, [user('a')], { stream: true });
    assert.deepEqual(
      ['content-type', 'cache-control', 'x-accel-buffering'].map((name) =>
        answer.headers.get(name),
      ),
      ['text/event-stream', 'no-cache', 'no'],
    );
    assert.equal(
      answer.text,
      'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"toy","choices":[{"index":0,"delta":{"role":"assistant","content":"","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{\\"p\\":1.0}"},"index":0}]},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}\n\ndata: [DONE]\n\n',
    );
    assert.equal(fixture.engine.body(0)['stream'], undefined);
    // A client of streams puts the calls together anew: with an index, or another one.
    const rebuilt = { ...said(''), reasoning_content: 'hm', tool_calls: [{ index: 4, ...call }] };
    fixture.engine.says({ finish: 'length' });
    const more = await fixture.chat(id, [user('a'), rebuilt, result('1')], { stream: true });
    assert.ok(more.text.includes('"finish_reason":"length"'));
    assert.equal((await fixture.view(id)).records.length, 2);
    fixture.engine.script = () => ({ status: 400, body: '{"e":1}' });
    const broken = await fixture.chat(await fixture.newSession(), [user('a')], { stream: true });
    assert.deepEqual([broken.status, broken.text], [400, '{"e":1}']);
  });

  it('reach through to the engine with any other path and method, whatever the session', async () => {
    await using fixture = await SessionFixture.start();
    fixture.engine.script = () => ({ status: 207, headers: { 'x-a': '1' }, body: 'as it is' });
    for (const method of ['GET', 'POST', 'PUT', 'DELETE', 'PATCH']) {
      const raw = method === 'GET' ? undefined : '{ "a": 1.0 }';
      const answer = await fixture.call(method, '/sessions/nobody/v1/models/a%2Fb?x=1&x=2', {
        ...(raw !== undefined && { raw }),
      });
      assert.deepEqual(
        [answer.status, answer.text, answer.headers.get('x-a')],
        [207, 'as it is', '1'],
      );
      const sent = fixture.engine.requests.at(-1);
      assert.deepEqual([sent?.method, sent?.url], [method, '/v1/models/a%2Fb?x=1&x=2']);
      assert.equal(sent?.text, raw ?? '');
    }
    assert.equal((await fixture.call('PUT', '/sessions')).status, 405);
    await using alone = await SessionFixture.start({ engineUrl: 'http://127.0.0.1:9' });
    const down = await alone.call('GET', '/sessions/x/health');
    assert.match(String(down.json['error']), /^backend transport error: /);
  });

  it('ask who makes a session or reaches through, and take the id of a session for its key', async () => {
    const seen: (string | null)[] = [];
    await using fixture = await SessionFixture.start({
      hidesCallers: true,
      access: (_, key) => {
        seen.push(key);
        return key === 'our-key' ? null : { status: 401, message: 'a key is needed' };
      },
    });
    const refused = await fixture.call('POST', '/sessions');
    assert.deepEqual([refused.status, refused.text], [401, errorText('a key is needed')]);
    assert.equal((await fixture.call('GET', '/sessions/x/v1/models')).status, 401);
    const made = await fixture.call('POST', '/k/our-key/sessions');
    const id = String(made.json['session_id']);
    const headers = { authorization: 'Bearer our-key-too' };
    const body = { messages: [user('a')] };
    assert.equal((await fixture.call('POST', chatPath(id), { body, headers })).status, 200);
    assert.equal(fixture.engine.requests.at(-1)?.headers.authorization, undefined);
    assert.deepEqual(seen, [null, null, 'our-key']);
  });

  it('tell a session that was not used for too long from one that never was', async () => {
    let ms = 0;
    const clock = { now: () => new Date(), monotonicMs: () => ms, sleep: () => Promise.resolve() };
    await using fixture = await SessionFixture.start({ clock, maxIdleMs: 1_000 });
    const [used, idle] = [await fixture.newSession(), await fixture.newSession()];
    ms = 900;
    await fixture.view(used);
    ms = 1_100;
    const gone = await fixture.call('GET', `/sessions/${idle}`);
    assert.deepEqual(
      [gone.status, gone.text],
      [410, errorText(`session expired: session_id=${idle}`)],
    );
    assert.equal((await fixture.call('GET', `/sessions/${used}`)).status, 200);
    // A call that the engine works on is use.
    fixture.engine.script = () => {
      ms += 5_000;
      return turnAnswer();
    };
    assert.equal((await fixture.chat(used, [user('a')])).status, 200);
    assert.equal((await fixture.view(used)).records.length, 1);
  });
});
