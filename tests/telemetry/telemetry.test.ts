import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { systemClock } from '../../src/core/clock.ts';
import { silentLogger } from '../../src/core/logger.ts';
import type { Logger } from '../../src/core/logger.ts';
import type { RolloutOutcome } from '../../src/wire/rollout/rollout-outcome.ts';
import { Telemetry } from '../../src/telemetry/telemetry.ts';

const success: RolloutOutcome = {
  ...{ stage: 'done', cause: null, trainable: true, retryable: false, verdict: null },
  ...{ status: 'success', reward: 1, errMessage: null, errCategory: null },
};
const failure: RolloutOutcome = {
  ...{ stage: 'agent', cause: 'AGENT_TIMEOUT', trainable: false, retryable: false, verdict: null },
  ...{ status: 'failure', reward: null, errMessage: 'late', errCategory: 'timeout' },
};

async function openTelemetry(logger: Logger = silentLogger): Promise<Telemetry> {
  return await Telemetry.open({
    ...{ clock: systemClock, logger, tenants: ['default', 'a'], otlpUrl: null },
    ...{ otlpHeaders: {}, serviceName: 'slipway', instanceId: null },
  });
}

/** Value of each series of a Prometheus page. */
async function seriesOf(telemetry: Telemetry): Promise<ReadonlyMap<string, number>> {
  const series = new Map<string, number>();
  for (const line of (await telemetry.text()).split('\n')) {
    if (line === '' || line.startsWith('#')) continue;
    const at = line.lastIndexOf(' ');
    const value = Number(line.slice(at + 1));
    assert.ok(!Number.isNaN(value), line);
    assert.match(line.slice(0, at), /^[a-z_]+(\{([a-z]+="[^"]*",?)+\})?$/);
    series.set(line.slice(0, at), value);
  }
  return series;
}

function live(telemetry: Telemetry, index: number, outcome: RolloutOutcome): void {
  const rollout = { id: `r${index}`, tenant: ['a', 'default', `t${index}`][index % 3]! };
  for (const type of ['queued', 'started', 'requeued', 'started', 'completed'] as const)
    telemetry.rollout(rollout, { type });
  telemetry.call(rollout.id, {
    ...{ status: [200, 404, 503, null][index % 4]!, answerBytes: index },
    ...{ firstByteMs: index % 2 === 0 ? index : null, durationMs: 2 * index },
  });
  telemetry.commit({ durationMs: index, writes: index });
  telemetry.rollout(rollout, { type: 'ended', outcome });
  for (const channel of ['completion', 'grader'] as const)
    telemetry.callback(rollout.id, { channel, result: 'delivered', attempts: 1 + (index % 3) });
  telemetry.rollout(rollout, { type: 'settled' });
}

describe('metrics', () => {
  it('count what happened, by state and cause, tenant, channel and status', async () => {
    await using telemetry = await openTelemetry();
    for (let index = 0; index < 12; index += 1)
      live(telemetry, index, index % 2 === 0 ? success : failure);
    const series = await seriesOf(telemetry);
    const rows: readonly (readonly [name: string, value: number])[] = [
      ['slipway_rollouts_accepted_total', 12],
      ['slipway_rollout_requeues_total', 12],
      ['slipway_rollouts_ended_total{state="success",cause="none"}', 6],
      ['slipway_rollouts_ended_total{state="failure",cause="AGENT_TIMEOUT"}', 6],
      ['slipway_rollouts_ended_total{state="failure",cause="INTERNAL"}', 0],
      ['slipway_rollouts_ended_total{state="cancelled",cause="none"}', 0],
      ['slipway_tenant_rollouts_ended_total{tenant="a",state="success"}', 2],
      ['slipway_tenant_rollouts_ended_total{tenant="other",state="failure"}', 2],
      ['slipway_callbacks_total{channel="grader",result="delivered"}', 12],
      ['slipway_callback_attempts_total{channel="completion"}', 24],
      ['slipway_gateway_calls_total{status="2xx"}', 3],
      ['slipway_gateway_calls_total{status="none"}', 3],
      ['slipway_gateway_answer_bytes_total', 66],
      ['slipway_gateway_first_byte_seconds_count', 6],
      ['slipway_rollout_stage_seconds_count{stage="queued"}', 24],
      ['slipway_rollout_stage_seconds_count{stage="running"}', 24],
      ['slipway_rollout_stage_seconds_count{stage="whole"}', 12],
      ['slipway_store_commit_seconds_count', 12],
      ['slipway_admission_running', 0],
    ];
    for (const [name, value] of rows) assert.equal(series.get(name), value, name);
    assert.ok((series.get('process_resident_memory_bytes') ?? 0) > 1_000_000);
    assert.ok(series.has('slipway_event_loop_lag_seconds{quantile="p99"}'));
    assert.match(telemetry.contentType, /^text\/plain; version=0\.0\.4/);
  });

  it('have as many series at 10,000 rollouts as at 10 and as at none', async () => {
    await using telemetry = await openTelemetry();
    const atStart = [...(await seriesOf(telemetry)).keys()];
    for (let index = 0; index < 10; index += 1) live(telemetry, index, success);
    const atTen = [...(await seriesOf(telemetry)).keys()];
    for (let index = 10; index < 10_000; index += 1)
      live(telemetry, index, index % 2 === 0 ? success : failure);
    const atMany = [...(await seriesOf(telemetry)).keys()];
    assert.deepEqual(atTen, atStart);
    assert.deepEqual(atMany, atStart);
    assert.equal(new Set(atStart).size, atStart.length);
  });

  it('read the gauges of admission when somebody scrapes', async () => {
    await using telemetry = await openTelemetry();
    let running = 3;
    telemetry.readAdmission(() => ({
      capacity: {
        ...{ max_concurrent: 4, max_queue_depth: 4, in_flight: 5, available: 3, accepting: true },
      },
      ...{ runningCap: 2, running, queued: 2, delivering: 0, paused: null },
      tenants: [
        { name: 'a', running: 1, queued: 1 },
        { name: 'x', running: 1, queued: 0 },
        { name: 'y', running: 1, queued: 1 },
      ],
    }));
    const first = await seriesOf(telemetry);
    running = 1;
    const second = await seriesOf(telemetry);
    assert.equal(first.get('slipway_admission_running'), 3);
    assert.equal(second.get('slipway_admission_running'), 1);
    assert.equal(first.get('slipway_admission_accepting'), 1);
    assert.equal(first.get('slipway_admission_paused'), 0);
    assert.equal(first.get('slipway_admission_running_cap'), 2);
    assert.equal(first.get('slipway_tenant_running{tenant="a"}'), 1);
    assert.equal(first.get('slipway_tenant_running{tenant="other"}'), 2);
    assert.equal(first.get('slipway_tenant_queued{tenant="default"}'), 0);
  });

  it('of two servers in one process do not meet', async () => {
    await using one = await openTelemetry();
    await using other = await openTelemetry();
    live(one, 0, success);
    assert.equal((await seriesOf(other)).get('slipway_rollouts_accepted_total'), 0);
  });

  it('take up a rollout of an earlier life of the server', async () => {
    await using telemetry = await openTelemetry();
    const rollout = { id: 'old', tenant: 'a' };
    telemetry.rollout(rollout, { type: 'ended', outcome: failure });
    telemetry.rollout(rollout, { type: 'settled' });
    telemetry.rollout(rollout, { type: 'settled' });
    const series = await seriesOf(telemetry);
    assert.equal(series.get('slipway_rollout_stage_seconds_count{stage="settling"}'), 1);
    assert.equal(series.get('slipway_rollout_stage_seconds_count{stage="running"}'), 0);
  });

  it('that fail are told once and break nothing', async () => {
    const told: string[] = [];
    await using telemetry = await openTelemetry({ log: (_level, message) => told.push(message) });
    const broken = null as unknown as RolloutOutcome;
    for (let count = 0; count < 3; count += 1)
      telemetry.rollout({ id: 'r', tenant: 'a' }, { type: 'ended', outcome: broken });
    assert.deepEqual(told, ['telemetry failed']);
    live(telemetry, 1, success);
    assert.equal((await seriesOf(telemetry)).get('slipway_rollouts_accepted_total'), 1);
  });
});
