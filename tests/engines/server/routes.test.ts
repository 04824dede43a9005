/** Every route of the engine's server, over HTTP. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request, type IncomingMessage } from 'node:http';
import { after, before, describe, it } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import type { RequestLogEntry } from '../../../src/engines/server/request-log.ts';
import { hi, says, serve, type Serving } from './serving.ts';

let engine: Serving;
before(async () => {
  engine = await serve({ policy: says('Hello, wörld! 👍') });
});
after(() => engine[Symbol.asyncDispose]());

const lastLine = (): RequestLogEntry => engine.log().at(-1)!;

describe('tokens and text', () => {
  const text = 'a  b\r\n日本 👍';
  it('/tokenize takes both engines’ bodies', async () => {
    const expected = engine.vocabulary.encode(text, { parsesSpecial: true });
    for (const body of [{ prompt: text }, { text }]) {
      const answer = await engine.json('/tokenize', body);
      assert.deepEqual(answer.tokens, expected);
      assert.equal(answer.count, expected.length);
      assert.equal(answer.max_model_len, 100_000);
    }
    const chat = await engine.json('/tokenize', { messages: hi.messages });
    assert.deepEqual(chat.tokens, engine.model.render({ messages: [{ role: 'user', content: 'hi' }], tools: [] })); // prettier-ignore
    const batch = await engine.json('/tokenize', { prompt: ['a', text] });
    assert.deepEqual(batch.tokens[1], expected);
    assert.deepEqual(
      batch.count,
      batch.tokens.map((ids) => (ids as unknown as number[]).length),
    );
  });

  it('/detokenize is the way back', async () => {
    const { tokens } = await engine.json('/tokenize', { prompt: text });
    const answer = await engine.json('/detokenize', { tokens });
    assert.equal(answer.prompt, text);
    assert.equal(answer.text, text);
  });
});

it('a body that no engine could use is refused before it is read', async () => {
  const headers = { 'content-type': 'application/json', 'content-length': 17 * 2 ** 20 };
  const asked = request(`${engine.url}/generate`, { method: 'POST', headers });
  asked.flushHeaders();
  const [answer] = (await once(asked, 'response')) as [IncomingMessage];
  assert.equal(answer.statusCode, 413);
  asked.destroy();
});

describe('identity, load and the router', () => {
  it('names its model', async () => {
    const models = (await (await engine.get('/v1/models')).json()) as { data: { id: string }[] };
    assert.deepEqual(
      models.data.map(({ id }) => id),
      ['mock'],
    );
    assert.equal((await engine.get('/v1/models/mock')).status, 200);
    assert.equal((await engine.get('/v1/models/other')).status, 404);
    for (const route of ['/model_info', '/get_model_info', '/server_info', '/get_server_info']) {
      const answer = (await (await engine.get(route)).json()) as Record<string, unknown>;
      assert.equal(answer['model_path'], 'mock');
      assert.equal(answer['weight_version'], 'default');
    }
  });

  for (const route of ['/health', '/health_generate'])
    it(`${route} is well`, async () => {
      assert.equal((await engine.get(route)).status, 200);
    });

  it('tells its load in every spelling', async () => {
    const loads = (await (await engine.get('/v1/loads?include=core')).json()) as {
      loads: [{ num_running_reqs: number }];
      aggregate: { total_waiting_reqs: number };
    };
    assert.equal(loads.loads[0].num_running_reqs, 0);
    assert.equal(loads.aggregate.total_waiting_reqs, 0);
    const old = (await (await engine.get('/get_load')).json()) as [{ num_reqs: number }];
    assert.equal(old[0].num_reqs, 0);
    const metrics = await (await engine.get('/metrics')).text();
    for (const name of ['num_requests_running', 'num_requests_waiting', 'kv_cache_usage_perc'])
      assert.match(metrics, new RegExp(`^vllm:${name}\\{model_name="mock"\\} 0$`, 'm'));
  });

  it('lists itself as the only worker, and takes others', async () => {
    await using router = await serve();
    const list = async (): Promise<string[]> =>
      ((await (await router.get('/list_workers')).json()) as { urls: string[] }).urls;
    assert.deepEqual(await list(), [router.url]);
    const added = await router.json('/add_worker?url=http://b:1@0');
    assert.deepEqual(added, { status: 'success', worker_urls: [router.url, 'http://b:1@0'] });
    await router.json('/add_worker', { url: 'http://b:1@0' });
    assert.equal((await list()).length, 2);
    assert.equal((await router.post('/add_worker')).status, 400);
    const { worker_id: id } = await router.json<{ worker_id: string }>('/workers', {
      url: 'http://c:1',
    });
    const { workers } = (await (await router.get('/workers')).json()) as { workers: { url: string }[] }; // prettier-ignore
    assert.deepEqual(
      workers.map(({ url }) => url),
      [router.url, 'http://b:1@0', 'http://c:1'],
    );
    const removal = await fetch(`${router.url}/workers/${id}`, { method: 'DELETE' });
    assert.equal(removal.status, 202);
    await router.json('/remove_worker', { worker_url: 'http://b:1@0' });
    assert.deepEqual(await list(), [router.url]);
  });

  it('lists the workers that it was told of instead', async () => {
    await using router = await serve({ routerWorkers: ['http://a:1', 'http://a:2@1'] });
    const answer = (await (await router.get('/list_workers')).json()) as { urls: string[] };
    assert.deepEqual(answer.urls, ['http://a:1', 'http://a:2@1']);
  });
});

describe('refusals', () => {
  const chat = '/v1/chat/completions';
  const rows: readonly [
    title: string,
    route: string,
    body: unknown,
    status: number,
    words: RegExp,
  ][] = [
    // prettier-ignore
    ['no messages', chat, {}, 400, /messages/],
    [
      'a role that is none',
      chat,
      { messages: [{ role: 'x', content: '' }] },
      400,
      /messages\.0\.role/,
    ],
    ['several replies', chat, { ...hi, n: 2 }, 400, /^n: /],
    ['a temperature below zero', chat, { ...hi, temperature: -1 }, 400, /temperature/],
    [
      'meta_info in a stream',
      chat,
      { ...hi, stream: true, return_meta_info: true },
      400,
      /return_meta_info/,
    ],
    [
      'more tokens than the context holds',
      chat,
      { ...hi, max_tokens: 100_000 },
      400,
      /maximum context length is 100000 tokens/,
    ],
    [
      'a prompt longer than the context',
      '/generate',
      { input_ids: new Array(100_001).fill(1) },
      400,
      /longer than the model's context length/,
    ],
    ['a prompt without tokens', '/generate', { input_ids: [] }, 400, /empty/],
    ['an id that is none', '/generate', { input_ids: [999_999] }, 400, /999999/],
    ['neither text nor ids', '/generate', {}, 400, /text and input_ids/],
    ['a stream of a batch', '/generate', { input_ids: [[1], [2]], stream: true }, 400, /batches/],
    ['several prompts', '/v1/completions', { prompt: ['a', 'b'] }, 400, /one prompt/],
    ['a pause of no known mode', '/pause_generation', { mode: 'nap' }, 400, /mode/],
    ['a route that is none', '/v1/nothing', {}, 404, /Not Found: POST \/v1\/nothing/],
  ];
  for (const [title, route, body, status, words] of rows)
    it(`${title}: ${status}`, async () => {
      const response = await engine.post(route, body);
      assert.equal(response.status, status);
      const { error } = (await response.json()) as { error: { message: string } };
      assert.match(error.message, words);
    });

  it('a body that is no JSON: 400', async () => {
    assert.equal((await engine.post(chat, {}, { body: '{"messages":' })).status, 400);
  });

  it('an overflow is in the log with nothing sampled', async () => {
    await engine.post('/generate', { input_ids: new Array(100_001).fill(1), rid: 'long' });
    const line = lastLine();
    assert.equal(line.request_id, 'long');
    assert.deepEqual(line.output_ids, []);
    assert.match(line.error ?? '', /context length/);
  });

  it('a policy that throws is a 500 with its words in the log, and the engine lives on', async () => {
    let isBroken = true;
    await using other = await serve({
      policy: () => {
        if (isBroken) throw new Error('no idea');
        return { content: 'fine' };
      },
    });
    for (const body of [hi, { ...hi, stream: true }]) {
      const response = await other.post(chat, body);
      assert.equal(response.status, 500);
      assert.match(await response.text(), /no idea/);
      assert.equal(other.log().at(-1)?.error, 'no idea');
    }
    isBroken = false;
    assert.equal((await other.json(chat, hi)).choices[0].message.content, 'fine');
  });

  it('a policy that gives no reply is a 500', async () => {
    await using other = await serve({ policy: () => undefined as never });
    assert.match(await (await other.post(chat, hi)).text(), /gave no reply/);
  });
});

describe('dialects', () => {
  const ids = { ...hi, return_token_ids: true };
  it('openai refuses every extension as OpenAI does, and has no other routes', async () => {
    await using strict = await serve({ dialect: 'openai' });
    const refused = await strict.post('/v1/chat/completions', ids);
    assert.equal(refused.status, 400);
    const { error } = (await refused.json()) as { error: { message: string } };
    assert.equal(error.message, 'Unrecognized request argument supplied: return_token_ids');
    const answer = await strict.json('/v1/chat/completions', {
      ...hi,
      model: 'mock',
      logprobs: true,
    });
    assert.deepEqual(Object.keys(answer.choices[0].message), ['role', 'content']);
    assert.equal((await strict.post('/generate', { text: 'a' })).status, 404);
    assert.equal((await strict.post('/v1/chat/completions', { ...hi, model: 'x' })).status, 404);
  });

  it('vllm knows nothing of SGLang', async () => {
    await using vllm = await serve({ dialect: 'vllm' });
    const answer = await vllm.json('/v1/chat/completions', { ...ids, return_output_ids: true });
    assert.equal('sglext' in answer, false);
    assert.ok(answer.choices[0].token_ids!.length > 0);
    assert.equal((await vllm.post('/generate', { text: 'a' })).status, 404);
  });

  it('sglang refuses return_token_ids in streams and spells its errors its own way', async () => {
    await using sglang = await serve({ dialect: 'sglang' });
    const refused = await sglang.post('/v1/chat/completions', { ...ids, stream: true });
    assert.equal(refused.status, 400);
    assert.equal(((await refused.json()) as { object: string }).object, 'error');
  });
});

describe('keys and addresses', () => {
  it('a key is asked for everywhere but at health and metrics', async () => {
    await using locked = await serve({ apiKey: 'secret' });
    for (const authorization of ['', 'Bearer wrong', 'Bearer secrets']) {
      const headers = { 'content-type': 'application/json', authorization };
      const response = await locked.post('/v1/chat/completions', hi, { headers });
      assert.equal(response.status, 401);
    }
    const headers = { 'content-type': 'application/json', authorization: 'Bearer secret' };
    assert.equal((await locked.post('/v1/chat/completions', hi, { headers })).status, 200);
    assert.equal((await locked.get('/health')).status, 200);
    assert.equal((await locked.get('/metrics')).status, 200);
    assert.equal((await locked.get('/v1/models')).status, 401);
  });

  it('an address that others reach needs a key', async () => {
    await assert.rejects(serve({ host: '0.0.0.0' }), (error) =>
      isRolloutError(error, 'CONFIG_INVALID'),
    );
    await using open = await serve({ host: '0.0.0.0', apiKey: 'secret' });
    assert.match(open.url, /^http:\/\/0\.0\.0\.0:\d+$/);
  });

  it('a port that is taken is a configuration error', async () => {
    const port = Number(new URL(engine.url).port);
    await assert.rejects(serve({ port }), (error) => isRolloutError(error, 'CONFIG_INVALID'));
  });
});
