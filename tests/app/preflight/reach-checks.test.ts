/** What `slipway preflight` says of engines, models, callbacks and collectors, by real requests. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { serveEngine } from '../../../src/app/serve-engine.ts';
import type { PreflightResult } from '../../../src/wire/preflight-report.ts';
import { ChatUpstream } from '../../fakes/chat-upstream.ts';
import { PreflightFolder } from '../../support/preflight-run.ts';

type Row = readonly [
  flags: readonly string[],
  expected: Partial<Pick<PreflightResult, 'status' | 'code' | 'field'>>,
  summary: RegExp,
];

const nowhere = 'http://127.0.0.1:9';
const secret = 'sk-the-key-of-the-model';

async function assertRows(
  name: 'engine' | 'model' | 'callbacks' | 'telemetry',
  rows: readonly Row[],
  variables: Readonly<Record<string, string>> = {},
): Promise<void> {
  await using folder = await PreflightFolder.create();
  await folder.write('model-key', `${secret}\n`);
  for (const [flags, expected, summary] of rows) {
    const only = ['--backend', 'null', '--only', name, ...flags];
    const { one, stdout, stderr } = await folder.run(only, { variables });
    const result = one(name);
    for (const [key, value] of Object.entries(expected))
      assert.equal(result[key as keyof PreflightResult], value, JSON.stringify(result));
    assert.match(result.summary, summary);
    if (result.status === 'failed') assert.ok(result.remedy !== null || result.detail !== null);
    assert.ok(!`${stdout}${stderr}`.includes(secret), 'no key is told');
  }
}

const completion = (choice: object): string =>
  JSON.stringify({
    id: 'c',
    object: 'chat.completion',
    model: 'plain',
    choices: [
      {
        index: 0,
        finish_reason: 'stop',
        message: { role: 'assistant', content: 'hello' },
        ...choice,
      },
    ],
    usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
  });

describe('preflight of a model', { timeout: 120_000 }, () => {
  it('asks for one short completion, and warns when it comes without ids or log-probabilities', async () => {
    await using engine = Object.assign(await serveEngine({ port: '0' }, {}), {
      async [Symbol.asyncDispose]() {
        await engine.close();
      },
    });
    await using plain = await ChatUpstream.start((response) => {
      response.setHeader('content-type', 'application/json').end(completion({}));
    });
    await using closed = await ChatUpstream.start((response, { headers }) => {
      response.writeHead(401).end(JSON.stringify({ error: { message: headers.authorization } }));
    });
    await assertRows('model', [
      [[], { status: 'skipped' }, /--model-url/],
      [['--model-url', `${engine.url}/v1`], { status: 'ok' }, /tokens with ids and log-prob/],
      [
        ['--model-url', `${engine.url}/v1/chat/completions`],
        { status: 'ok' },
        /tokens with ids and log-probabilities/,
      ],
      [
        ['--model-url', plain.url, '--model-key-file', 'model-key'],
        { status: 'warning' },
        /^plain answers: 1 tokens, without token ids and log-probabilities/,
      ],
      [
        ['--model-url', closed.url, '--model-key-file', 'model-key'],
        { status: 'failed', code: 'ENGINE_UNAUTHORIZED' },
        /./,
      ],
      [
        ['--model-url', plain.url, '--model-key-file', 'gone'],
        { status: 'failed', field: '--model-key-file' },
        /no such file/,
      ],
      [['--model-url', `${nowhere}/v1`], { status: 'failed', code: 'ENGINE_UNAVAILABLE' }, /./],
      [['--model-url', `${nowhere}/${secret}/v1/chat/completions`], { status: 'failed' }, /127\.0\.0\.1/], // prettier-ignore
      [['--model-url', ''], { status: 'failed', code: 'MODEL_UNSPECIFIED' }, /empty/],
      [
        ['--model-url', plain.url, '--callbacks-allow', 'https://other.example'],
        { status: 'failed', code: 'CALLBACK_URL_REFUSED' },
        /not in the list/,
      ],
    ]);
    const [call] = plain.received;
    assert.equal(call?.headers.authorization, `Bearer ${secret}`);
    const body = JSON.parse(String(call.body)) as Record<string, unknown>;
    assert.equal(body['model'], 'osmosis-rollout');
    assert.ok(plain.received.length === 1, 'one call per check');
  });

  it('takes the key from OPENAI_API_KEY, and the name that the agent asks for', async () => {
    await using plain = await ChatUpstream.start((response) => {
      response.setHeader('content-type', 'application/json').end(completion({}));
    });
    await using folder = await PreflightFolder.create();
    const flags = ['--only', 'model', '--backend-native-model', 'openai/mine'];
    const variables = { OPENAI_API_KEY: secret };
    const { one } = await folder.run([...flags, '--model-url', plain.url], { variables });
    assert.equal(one('model').status, 'warning');
    const [call] = plain.received;
    assert.equal(call?.headers.authorization, `Bearer ${secret}`);
    assert.equal((JSON.parse(String(call.body)) as { model: string }).model, 'mine');
  });
});

describe('preflight of an engine that caps what runs', { timeout: 120_000 }, () => {
  it('asks for its load', async () => {
    await using engine = Object.assign(await serveEngine({ port: '0', kvTokens: '1000' }, {}), {
      async [Symbol.asyncDispose]() {
        await engine.close();
      },
    });
    await assertRows('engine', [
      [[], { status: 'skipped' }, /engine\.url is not set/],
      [['--engine-url', engine.url], { status: 'ok' }, /0 running, KV cache 0 %/],
      [['--engine-url', `${nowhere}/${secret}`], { status: 'failed' }, /127\.0\.0\.1/],
      [['--engine-url', nowhere], { status: 'failed', code: 'ENGINE_UNAVAILABLE' }, /./],
      [
        ['--engine-url', 'nowhere'],
        { status: 'failed', code: 'CONFIG_INVALID', field: 'engine.url' },
        /./,
      ],
    ]);
  });
});

describe('preflight of callbacks and collectors', { timeout: 120_000 }, () => {
  it('asks a receiver for its options only, with the login of the URL, and names what is refused', async () => {
    const status = new Map([['/gone', 404], ['/ill', 503]]); // prettier-ignore
    await using receiver = await ChatUpstream.start((response, { url }) => {
      response.writeHead(status.get(url) ?? 405).end();
    });
    const at = (path: string): string[] => ['--callback-url', `${receiver.url}${path}`];
    await assertRows('callbacks', [
      [[], { status: 'skipped' }, /--callback-url/],
      [at('/done?key=1'), { status: 'ok' }, /answers with 405, so it can be reached/],
      [at('/gone'), { status: 'warning' }, /404/],
      [at('/ill'), { status: 'warning' }, /503/],
      [
        ['--callback-url', `http://me:${secret}@127.0.0.1:${receiver.port}/`],
        { status: 'ok' },
        /405/,
      ],
      [['--callback-url', nowhere], { status: 'failed', code: 'CALLBACK_FAILED' }, /ECONNREFUSED/],
      [
        ['--callback-url', 'ftp://x'],
        { status: 'failed', code: 'CALLBACK_URL_REFUSED' },
        /http or https/,
      ],
      [
        [...at('/x'), '--callbacks-private-addresses', 'deny'],
        { status: 'failed', code: 'CALLBACK_URL_REFUSED' },
        /private address/,
      ],
      [
        [...at('/x'), '--callbacks-allow', 'https://c.example'],
        { status: 'failed', code: 'CALLBACK_URL_REFUSED' },
        /not in the list of allowed addresses/,
      ],
    ]);
    const { received } = receiver;
    assert.deepEqual(
      received.map(({ method, url, body }) => [method, url, body.length]),
      [['OPTIONS', '/done?key=1', 0], ['OPTIONS', '/gone', 0], ['OPTIONS', '/ill', 0], ['OPTIONS', '/', 0]], // prettier-ignore
    );
    const login = Buffer.from(`me:${secret}`).toString('base64');
    assert.equal(received.at(-1)?.headers.authorization, `Basic ${login}`);
  });

  it('reaches the collector of spans with its headers, and sends no span', async () => {
    await using collector = await ChatUpstream.start((response) => {
      response.writeHead(405).end();
    });
    await assertRows(
      'telemetry',
      [
        [[], { status: 'skipped' }, /telemetry\.otlp_url is not set/],
        [
          ['--telemetry-otlp-url', collector.url, '--telemetry-otlp-headers', '{"x-key":"env:OTLP_KEY"}'], // prettier-ignore
          { status: 'ok' },
          /405/,
        ],
        [
          ['--telemetry-otlp-url', nowhere],
          { status: 'failed', field: 'telemetry.otlp_url' },
          /ECONNREFUSED/,
        ],
        [
          ['--telemetry-otlp-url', collector.url, '--telemetry-otlp-headers', '{"x-key":"env:GONE"}'], // prettier-ignore
          { status: 'failed', code: 'CONFIG_INVALID' },
          /GONE is not set/,
        ],
      ],
      { OTLP_KEY: secret },
    );
    assert.deepEqual(
      collector.received.map(({ method, headers }) => [method, headers['x-key']]),
      [['OPTIONS', secret]],
    );
  });
});
