import assert from 'node:assert/strict';
import type { RolloutArchive } from '../../src/archive/rollout-archive.ts';
import { NullBackend } from '../../src/backends/null/null-backend.ts';
import { canonicalJson } from '../../src/core/canonical-json.ts';
import { systemClock } from '../../src/core/clock.ts';
import { never } from '../../src/core/linked-abort.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { openEngine } from '../../src/engines/registry.ts';
import { ModelGateway } from '../../src/gateway/model-gateway.ts';
import { RolloutScheduler } from '../../src/scheduler/rollout-scheduler.ts';
import { MemoryRolloutStore } from '../../src/store/memory/memory-rollout-store.ts';
import { Telemetry } from '../../src/telemetry/telemetry.ts';
import { rolloutRequestSchema } from '../../src/wire/rollout/rollout-request.ts';
import { HandCallbacks } from '../scheduler/scheduler-bench.ts';
import { UrlPolicy } from '../../src/wire/url-policy.ts';
import { until } from '../support/until.ts';

/** Keeps nothing: what is on disk has no series. */
const noArchive: RolloutArchive = {
  save: () => Promise.resolve([]),
  list: () => Promise.resolve([]),
  locate: () => Promise.resolve(null),
  document: () => Promise.resolve(null),
  remove: () => Promise.resolve(),
  trim: () => Promise.resolve([]),
};
const limits = { maxConcurrent: 64, maxQueueDepth: 192 };
/** Ends of all kinds, told to the null backend. */
const ends = [
  {},
  { reward: null },
  { fail: 'AGENT_FAILED' },
  { fail: 'ENVIRONMENT_START_FAILED' },
  { fail: 'VERIFIER_TIMEOUT' },
  { fail: 'DISK_FULL' },
];

/**
 * Runs rollouts of all kinds on a scheduler with the null backend and looks at the metrics after 10 and after `count` of them: the same series, and the
 * numbers are right.
 */
export async function assertFixedSeries(count: number): Promise<void> {
  const clock = systemClock;
  const store = new MemoryRolloutStore(() => clock.now());
  const callbacks = new HandCallbacks(store);
  await using telemetry = await Telemetry.open({
    ...{ clock, logger: silentLogger, tenants: ['default', 'a'], otlpUrl: null },
    ...{ otlpHeaders: {}, serviceName: 'slipway', instanceId: null },
  });
  await using gateway = new ModelGateway({
    ...{ clock, logger: silentLogger, baseUrl: () => 'http://127.0.0.1:1/v1' },
    ...{ policy: new UrlPolicy({ allow: [], privateAddresses: 'allow' }), openEngine },
    onCall: ({ rolloutId, ...call }) => telemetry.call(rolloutId, call),
  });
  callbacks.onEnd(({ delivery: { rolloutId, channel, attempts }, result }) =>
    telemetry.callback(rolloutId, { channel, result, attempts }),
  );
  const scheduler = new RolloutScheduler(
    {
      limits: { ...limits, queueTimeoutMs: 3_600_000, cancelMs: 1_900 },
      tenants: [{ name: 'a', weight: 1, idPrefix: 'a-' }],
      pause: { afterFailures: 0, retryMs: 30_000 },
      kv: { high: 0.9, low: 0.8, pollMs: 500 },
      retention: { maxAgeMs: 1e9, maxEnded: 1e6, archiveBytes: 1e9, everyMs: 1e9 },
      version: '1.2.3',
    },
    {
      ...{ store, gateway, callbacks, archive: noArchive, clock, logger: silentLogger },
      backend: new NullBackend({}, { limits, clock }),
      ...{ observers: [telemetry], engineLoad: null },
    },
  );
  telemetry.readAdmission(() => scheduler.admission());
  await scheduler.start();
  const capacity = limits.maxConcurrent + limits.maxQueueDepth;
  let submitted = 0;
  const runUpTo = async (total: number): Promise<readonly string[]> => {
    while (submitted < total) {
      const group = Math.min(capacity, total - submitted);
      const answers = Array.from({ length: group }, async () => {
        const index = (submitted += 1);
        const body = {
          rollout_id: `${index % 3 === 0 ? 'a-' : 'x-'}${index}`,
          initial_messages: [],
          chat_completions_url: 'http://127.0.0.1:1/v1',
          completion_callback_url: 'http://127.0.0.1:1/completion',
          grader_callback_url: 'http://127.0.0.1:1/grader',
          metadata: { null: ends[index % ends.length] },
        };
        const { kind } = await scheduler.submit({
          request: rolloutRequestSchema.parse(body),
          canonicalBody: canonicalJson(body),
          caller: { tenant: index % 7 === 0 ? `tenant-${index}` : null },
        });
        assert.equal(kind, 'accepted');
      });
      await Promise.all(answers);
      await until('nothing is in flight', () => scheduler.admission().capacity.in_flight === 0);
    }
    const page = await telemetry.text();
    return page.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  };
  const namesOf = (lines: readonly string[]): readonly string[] =>
    lines.map((line) => line.slice(0, line.lastIndexOf(' ')));
  try {
    const atTen = await runUpTo(10);
    const atMany = await runUpTo(count);
    assert.deepEqual(namesOf(atMany), namesOf(atTen));
    assert.ok(atMany.includes(`slipway_rollouts_accepted_total ${count}`));
    assert.ok(atMany.includes(`slipway_rollout_stage_seconds_count{stage="whole"} ${count}`));
    const grader = `slipway_callbacks_total{channel="grader",result="delivered"} ${count}`;
    assert.ok(atMany.includes(grader));
    const diskFull = 'slipway_rollouts_ended_total{state="failure",cause="DISK_FULL"}';
    assert.ok(atMany.includes(`${diskFull} ${Math.floor((count + 1) / ends.length)}`));
  } finally {
    const now = AbortSignal.abort(new Error('at once'));
    await scheduler.stop({ drainMs: 0, abortMs: 60_000, hurry: now, force: never });
  }
}
