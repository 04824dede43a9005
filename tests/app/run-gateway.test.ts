/** The gateway of a run keeps the calls of a trial in the trial's folder; what programs make of it is in `tests/integration/installed-agents.test.ts`. */
import assert from 'node:assert/strict';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { OpenRoute, RouteUpstream } from '../../src/agents/agent.ts';
import { RunGateway } from '../../src/app/run-gateway.ts';
import { systemClock } from '../../src/core/clock.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { openEngine } from '../../src/engines/registry.ts';
import { isWholeCapture } from '../../src/gateway/capture/read-calls.ts';
import { ChatUpstream } from '../fakes/chat-upstream.ts';

const answer = (id: string, content: string) => ({
  ...{ id, object: 'chat.completion', model: 'm', prompt_token_ids: [7] },
  choices: [
    { index: 0, message: { role: 'assistant', content }, finish_reason: 'stop', token_ids: [1, 2] },
  ],
});

describe('the gateway of a run', { timeout: 60_000 }, () => {
  let dir = '';
  let upstream: ChatUpstream;
  let gateway: RunGateway;
  let asked: string[] = [];

  beforeEach(async () => {
    asked = [];
    dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-run-gateway-'));
    upstream = await ChatUpstream.start((response, { body }) => {
      asked.push(body.toString());
      const text = JSON.stringify(answer(`chatcmpl-${asked.length}`, 'my secret-value'));
      response.writeHead(200, { 'content-type': 'application/json' }).end(text);
    });
    gateway = new RunGateway({ clock: systemClock, logger: silentLogger, openEngine });
  });
  afterEach(async () => {
    await gateway[Symbol.asyncDispose]();
    await upstream[Symbol.asyncDispose]();
    await rm(dir, { recursive: true, force: true });
  });

  const open = (more: Partial<RouteUpstream> = {}, secrets: readonly string[] = []) =>
    gateway.open(
      {
        ...{ baseUrl: upstream.url, apiKey: 'sk-upstream-1' },
        ...{ engineKind: 'vllm', isCaptured: true },
        ...more,
      },
      { dir, secrets },
    );
  const ask = async ({ baseUrl, apiKey }: OpenRoute): Promise<string> => {
    const response = await fetch(`${baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        model: 'm',
        messages: [{ role: 'user', content: `${asked.length}` }],
      }),
    });
    return await response.text();
  };

  it('tells calls while the route is open, and leaves them in the folder of the trial', async () => {
    const route = await open();
    assert.deepEqual(await route.calls(), []);
    for (const count of [1, 2]) {
      await ask(route);
      const calls = await route.calls();
      assert.deepEqual(
        calls.map(({ answerId }) => answerId),
        ['chatcmpl-1', 'chatcmpl-2'].slice(0, count),
      );
      assert.deepEqual(calls.at(-1)?.answer.metrics?.completion_token_ids, [1, 2]);
    }
    await route.close();
    assert.deepEqual(await readdir(dir), ['model-calls.steps.ndjson']);
    assert.ok(await isWholeCapture(path.join(dir, 'model-calls.steps.ndjson')));
  });

  it('asks for ids where the engine is known to tell them', async () => {
    for (const [engineKind, isAsked] of [
      ['vllm', true],
      ['chat', false],
    ] as const)
      // prettier-ignore
      await ask(await open({ engineKind })).then(() =>
        assert.equal(asked.at(-1)?.includes('return_token_ids'), isAsked, engineKind),
      );
  });

  it('keeps no secret of the trial, and no ids that stand for one', async () => {
    const route = await open({}, ['secret-value']);
    await ask(route);
    const [call] = await route.calls();
    assert.equal(call?.answer.message, 'my [REDACTED]');
    assert.equal(call.answer.metrics?.completion_token_ids, undefined);
    await route.close();
    const text = await readFile(path.join(dir, 'model-calls.steps.ndjson'), 'utf8');
    assert.ok(!text.includes('secret-value') && !text.includes('sk-upstream-1'));
  });

  it('keeps nothing where it is not to', async () => {
    const route = await open({ isCaptured: false });
    await ask(route);
    assert.deepEqual(await route.calls(), []);
    await route.close();
    assert.deepEqual(await readdir(dir), []);
  });

  it('refuses the key of a route that is closed', async () => {
    const route = await open();
    await route.close();
    await ask(route);
    assert.deepEqual([asked, await readdir(dir)], [[], []]);
  });
});
