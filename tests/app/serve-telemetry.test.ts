/** What a composed server tells about its rollouts: metrics, spans, log; and what none of them shows. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { it } from 'node:test';
import { never } from '../../src/core/linked-abort.ts';
import { ChatUpstream } from '../fakes/chat-upstream.ts';
import { attributesOf, startOtlpReceiver } from '../fakes/otlp-receiver.ts';
import { until } from '../support/until.ts';
import { nullRollout, ServeFixture } from './serve-fixture.ts';

const rollouts = 12;
const canaries = {
  llm_api_key: 'canary-of-the-model-0123456789',
  controller_api_key: 'canary-of-the-controller-0123456789',
};

it('counts, traces and logs every rollout, and shows no key', { timeout: 120_000 }, async () => {
  await using receiver = await startOtlpReceiver();
  await using upstream = await ChatUpstream.start((response, { headers }) => {
    assert.equal(headers.authorization, `Bearer ${canaries.llm_api_key}`);
    response.setHeader('content-type', 'application/json');
    response.end('{"choices":[{"index":0,"message":{"role":"assistant","content":"hi"}}]}');
  });
  await using fixture = await ServeFixture.create();
  const server = await fixture.start({ '--telemetry-otlp-url': receiver.url });
  await using controller = await fixture.controller({
    ...{ serverUrl: server.controlUrl, callbackKey: canaries.controller_api_key },
  });
  const ends = Array.from({ length: rollouts }, (_, index) =>
    controller.run({
      ...nullRollout(`r-${index}`, {
        agent_calls: 2,
        ...(index % 3 === 0 && { fail: 'AGENT_FAILED' }),
      }),
      chat_completions_url: `${upstream.url}/v1`,
      llm_api_key: canaries.llm_api_key,
    }),
  );
  const cancelled = fetch(`${server.controlUrl}/rollout`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      ...nullRollout('cancelled', { duration_ms: 3_600_000 }),
      ...{ ...canaries, chat_completions_url: `${upstream.url}/v1` },
      completion_callback_url: 'http://127.0.0.1:9/never',
    }),
  });
  assert.equal((await cancelled).status, 202);
  await Promise.all(ends);
  const metrics = async (): Promise<string> =>
    await (await fetch(`${server.controlUrl}/metrics`)).text();
  const cancellation = await fetch(`${server.controlUrl}/rollout/cancel`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ids: ['cancelled'] }),
  });
  assert.equal(cancellation.status, 200);
  const settled = `slipway_rollout_stage_seconds_count{stage="whole"} ${rollouts + 1}\n`;
  await until('every rollout is settled', async () => (await metrics()).includes(settled));
  const page = await metrics();
  for (const line of [
    `slipway_rollouts_accepted_total ${rollouts + 1}`,
    `slipway_rollouts_ended_total{state="success",cause="none"} ${(2 * rollouts) / 3}`,
    `slipway_rollouts_ended_total{state="failure",cause="AGENT_FAILED"} ${rollouts / 3}`,
    'slipway_rollouts_ended_total{state="cancelled",cause="none"} 1',
    `slipway_gateway_calls_total{status="2xx"} ${2 * rollouts}`,
    `slipway_callbacks_total{channel="grader",result="delivered"} ${rollouts}`,
    'slipway_admission_in_flight 0',
  ])
    assert.ok(page.includes(`${line}\n`), line);
  assert.match(page, /^slipway_store_commit_seconds_count [1-9]/m);
  await server.stop(never);

  const traces = Map.groupBy(receiver.spans, ({ traceId }) => traceId);
  assert.equal(traces.size, rollouts + 1);
  for (const spans of traces.values()) {
    const [whole, ...others] = spans.filter(({ name }) => name === 'rollout');
    assert.ok(whole);
    assert.deepEqual(others, []);
    const { 'slipway.rollout_id': id, 'slipway.model_calls': calls } = attributesOf(whole);
    assert.equal(Number(calls), id === 'cancelled' ? 0 : 2);
    assert.deepEqual(
      whole.events.map(({ name }) => name),
      id === 'cancelled' ? [] : ['callback', 'callback'],
    );
  }
  const log = await readFile(path.join(server.dataDir, 'logs', 'server.ndjson'), 'utf8');
  assert.match(log, /"message":"the server is ready"/);
  const lines = log
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const ended = lines.filter(({ message }) => message === 'rollout ended');
  assert.equal(new Set(ended.map(({ rolloutId }) => rolloutId)).size, rollouts + 1);
  assert.equal(ended.length, rollouts + 1);
  for (const { state, cause, error, diagnostics } of ended)
    if (state === 'failure') {
      assert.deepEqual([cause, typeof error], ['AGENT_FAILED', 'string']);
      assert.equal(typeof diagnostics, 'object');
      assert.notEqual(diagnostics, null);
    }
  for (const text of [page, log, JSON.stringify(receiver.documents)])
    assert.ok(!text.includes('canary'));
});
