/** The section `gateway` of the configuration, and what a rollout adds to it, from the request to the diagnostics. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { it } from 'node:test';
import { ChatUpstream } from '../fakes/chat-upstream.ts';
import { until } from '../support/until.ts';
import { nullRollout, ServeFixture } from './serve-fixture.ts';

it(
  'pins and limits the calls of every rollout, and says what its agent ran into',
  { timeout: 120_000 },
  async () => {
    await using upstream = await ChatUpstream.start((response) => {
      response.setHeader('content-type', 'application/json');
      response.end('{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"}}]}');
    });
    await using fixture = await ServeFixture.create();
    const server = await fixture.start({
      ...{ '--gateway-sampling': '{"temperature":1,"seed":7}', '--gateway-max-turns': '2' },
    });
    await using controller = await fixture.controller({ serverUrl: server.controlUrl });
    const run = (id: string, calls: number, rules: object) => {
      const { metadata, ...rest } = nullRollout(id, { agent_calls: calls });
      return controller.run({
        ...{ ...rest, chat_completions_url: `${upstream.url}/v1` },
        metadata: { ...metadata, slipway_gateway: rules },
      });
    };
    assert.equal((await run('r1', 2, {})).status, 'success');
    assert.equal(
      (await run('r2', 3, { sampling: { temperature: 0.5, seed: null } })).status,
      'failure',
    );
    const bodies = upstream.received.map(
      ({ body }) => JSON.parse(body.toString()) as Readonly<Record<string, unknown>>,
    );
    assert.deepEqual(
      bodies.map(({ temperature, seed }) => [temperature, seed]),
      [
        [1, 7],
        [1, 7],
        [0.5, undefined],
        [0.5, undefined],
      ],
    );
    const file = path.join(server.dataDir, 'archive', 'r2', 'diagnostics.json');
    const read = (): Promise<string> => readFile(file, 'utf8').catch(() => '');
    await until('the diagnostics are archived', async () => (await read()) !== '');
    const { model_budget } = JSON.parse(await read()) as Readonly<Record<string, unknown>>;
    assert.deepEqual(model_budget, {
      ...{ code: 'BUDGET_EXHAUSTED', limit: 'max_turns', max: 2, used: 2, refused: 1 },
    });
    const wrong = await run('r3', 0, { sampling: { temprature: 1 } });
    assert.equal(wrong.status, 'failure');
  },
);
