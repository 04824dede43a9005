import { systemClock } from '../../src/core/clock.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { Telemetry } from '../../src/telemetry/telemetry.ts';
import type { RolloutOutcome } from '../../src/wire/rollout/rollout-outcome.ts';

const outcome: RolloutOutcome = {
  ...{ stage: 'done', cause: null, trainable: true, retryable: false, verdict: null },
  ...{ status: 'success', reward: 1, errMessage: null, errCategory: null },
};

/** Processor time that the metrics of one whole life cost, with two callbacks, a model call and five transactions of its own. */
export async function telemetryMicrosPerLife(lives: number): Promise<number> {
  await using telemetry = await Telemetry.open({
    ...{ clock: systemClock, logger: silentLogger, tenants: ['default'], otlpUrl: null },
    ...{ otlpHeaders: {}, serviceName: 'slipway', instanceId: null },
  });
  const live = (id: string): void => {
    const rollout = { id, tenant: 'default' };
    for (const type of ['queued', 'started', 'completed'] as const)
      telemetry.rollout(rollout, { type });
    telemetry.call(id, { status: 200, firstByteMs: 3, durationMs: 9, answerBytes: 999 });
    for (let count = 0; count < 5; count += 1) telemetry.commit({ durationMs: 1, writes: 1 });
    telemetry.rollout(rollout, { type: 'ended', outcome });
    for (const channel of ['completion', 'grader'] as const)
      telemetry.callback(id, { channel, result: 'delivered', attempts: 1 });
    telemetry.rollout(rollout, { type: 'settled' });
  };
  for (let index = 0; index < 1_000; index += 1) live(`warm-${index}`);
  const before = process.cpuUsage();
  for (let index = 0; index < lives; index += 1) live(`r-${index}`);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / lives;
}
