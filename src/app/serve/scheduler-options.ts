import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import {
  defaultCancelMs,
  defaultKvPollMs,
  defaultRetentionEveryMs,
  type SchedulerOptions,
} from '../../scheduler/scheduler-parts.ts';

export function schedulerOptions(config: ServeConfig, version: string): SchedulerOptions {
  const { admission, engine, retention, rollouts, tenants } = config;
  return {
    limits: {
      maxConcurrent: admission.maxConcurrent,
      maxQueueDepth: admission.maxQueueDepth,
      queueTimeoutMs: admission.queueTimeoutMs,
      cancelMs: defaultCancelMs,
    },
    tenants: Object.entries(tenants).map(([name, { weight, idPrefix }]) => ({
      name,
      weight,
      idPrefix,
    })),
    pause: { afterFailures: admission.pauseAfterFailures, retryMs: admission.pauseRetryMs },
    kv: { high: engine.kvHigh, low: engine.kvLow, pollMs: defaultKvPollMs },
    retention: {
      maxAgeMs: retention.maxAgeMs,
      maxEnded: retention.maxEnded,
      archiveBytes: retention.archiveBytes,
      everyMs: defaultRetentionEveryMs,
    },
    train: {
      train: rollouts.train,
      trainsSummaries: rollouts.trainSummaries,
      picker: rollouts.picker,
      maxTokens: rollouts.maxSampleTokens,
      routedExperts: rollouts.routedExperts,
      indexerTopk: rollouts.indexerTopk,
    },
    version,
  };
}
