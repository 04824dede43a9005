import type { EnvironmentProvider, EnvironmentSpec } from '../environments/environment.ts';
import type { PlannedTrial } from '../jobs/plan.ts';
import { planTrial } from '../trial/trial-plan.ts';
import type { HostVariables } from '../config/machine.ts';

export interface ScheduleOptions {
  readonly provider: EnvironmentProvider;
  readonly hostVariables: HostVariables;
  readonly storeId: string;
  readonly runId: string;
  readonly extraCaBundle: string | null;
  readonly now: () => Date;
  readonly signal: AbortSignal;
}

/** As long as a sandbox of a trial without limits may live, and more than most with. */
const lifetimeMs = 24 * 60 * 60_000;

/** What the trials are going to ask for as their first sandbox, in their order. One that cannot be planned is left out: it says so itself. */
export async function* trialSchedule(
  trials: readonly PlannedTrial[],
  options: ScheduleOptions,
): AsyncGenerator<EnvironmentSpec> {
  const { provider, hostVariables, signal, now } = options;
  for (const { config, task } of trials) {
    if (signal.aborted) return;
    let plan;
    try {
      const inputs = { ...(await task.load(signal)), skills: [] };
      plan = await planTrial({
        config,
        inputs,
        provider,
        hostVariables,
        warn: () => undefined,
        signal,
      });
    } catch {
      continue;
    }
    const { image, workdir, env, limits, network, laterNetworks } = plan.sandbox;
    yield {
      name: config.trial_name,
      labels: {
        storeId: options.storeId,
        runId: options.runId,
        trial: config.trial_name,
        expiresAt: new Date(now().getTime() + lifetimeMs).toISOString(),
      },
      ...{ image, workdir, env, limits, network, laterNetworks },
      forceBuild: config.environment.force_build,
      hostEndpoint: null,
      extraCaBundle: options.extraCaBundle,
      layers: [],
    };
  }
}
