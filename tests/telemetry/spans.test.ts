import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../src/core/clock.ts';
import { silentLogger } from '../../src/core/logger.ts';
import type { RolloutOutcome } from '../../src/wire/rollout/rollout-outcome.ts';
import { Telemetry } from '../../src/telemetry/telemetry.ts';
import { attributesOf, startOtlpReceiver } from '../fakes/otlp-receiver.ts';

const outcome: RolloutOutcome = {
  ...{ stage: 'agent', cause: 'AGENT_TIMEOUT', trainable: false, retryable: false, verdict: null },
  ...{ status: 'failure', reward: null, errMessage: 'late', errCategory: 'timeout' },
};

function openTelemetry(otlpUrl: string, exportTimeoutMs = 10_000): Promise<Telemetry> {
  return Telemetry.open({
    ...{ clock: systemClock, logger: silentLogger, tenants: ['default'], otlpUrl },
    ...{ otlpHeaders: { 'x-key': 'secret' }, serviceName: 'slipway', instanceId: 'one' },
    exportTimeoutMs,
  });
}

describe('spans', () => {
  it('are one trace per rollout, a span per stage, all ended, on real packages', async () => {
    await using receiver = await startOtlpReceiver();
    const rollouts = 50;
    {
      await using telemetry = await openTelemetry(receiver.url);
      for (let index = 0; index < rollouts; index += 1) {
        const rollout = { id: `r${index}`, tenant: 'default' };
        for (const type of ['queued', 'started', 'requeued', 'started', 'completed'] as const)
          telemetry.rollout(rollout, { type });
        for (const status of [200, null])
          telemetry.call(rollout.id, { status, firstByteMs: 1, durationMs: 2, answerBytes: 3 });
        telemetry.rollout(rollout, { type: 'ended', outcome });
        telemetry.callback(rollout.id, { channel: 'grader', result: 'delivered', attempts: 2 });
        telemetry.rollout(rollout, { type: 'settled' });
      }
    }
    const spans = receiver.spans;
    const traces = Map.groupBy(spans, ({ traceId }) => traceId);
    assert.equal(traces.size, rollouts);
    assert.ok(receiver.keys.every((key) => key === 'secret'));
    const ids = new Set<unknown>();
    for (const trace of traces.values()) {
      const whole = trace.filter(({ parentSpanId }) => (parentSpanId ?? '') === '');
      assert.equal(whole.length, 1);
      const { spanId, name, status, events } = whole[0]!;
      assert.equal(name, 'rollout');
      assert.deepEqual([status.code, status.message], [2, 'AGENT_TIMEOUT']);
      assert.deepEqual(
        events.map((event) => event.name),
        ['callback'],
      );
      const attributes = attributesOf(whole[0]!);
      ids.add(attributes['slipway.rollout_id']);
      assert.equal(attributes['slipway.state'], 'failure');
      assert.equal(Number(attributes['slipway.model_calls']), 2);
      assert.equal(Number(attributes['slipway.model_calls_failed']), 1);
      const stages = trace.filter(({ parentSpanId }) => parentSpanId === spanId);
      assert.deepEqual(stages.map((stage) => stage.name).sort(), [
        ...['grade', 'queued', 'queued', 'run', 'run', 'settle'],
      ]);
      for (const span of trace) assert.ok(BigInt(span.endTimeUnixNano) > 0n);
    }
    assert.equal(ids.size, rollouts);
    const resource = receiver.documents[0]?.resourceSpans[0]?.resource.attributes ?? [];
    const named = resource.map(({ key, value }) => [key, value.stringValue]);
    assert.ok(named.some(([key, value]) => key === 'service.name' && value === 'slipway'));
  });

  it('of rollouts that the server leaves behind are ended when it closes', async () => {
    await using receiver = await startOtlpReceiver();
    {
      await using telemetry = await openTelemetry(receiver.url);
      telemetry.rollout({ id: 'left', tenant: 'default' }, { type: 'queued' });
      telemetry.rollout({ id: 'left', tenant: 'default' }, { type: 'started' });
    }
    assert.deepEqual(receiver.spans.map(({ name }) => name).sort(), ['queued', 'rollout', 'run']);
    const whole = receiver.spans.find(({ name }) => name === 'rollout');
    assert.deepEqual(
      whole?.events.map(({ name }) => name),
      ['the server ended first'],
    );
  });

  it('that nobody takes hold up neither rollouts nor the end of the server', async () => {
    await using telemetry = await openTelemetry('http://127.0.0.1:9/', 100);
    telemetry.rollout({ id: 'r', tenant: 'default' }, { type: 'queued' });
    await telemetry.close(AbortSignal.timeout(50));
  });
});
