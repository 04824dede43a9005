import { RolloutError } from '../core/errors.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import type { Environment } from '../environments/environment.ts';
import { isSamePolicy, type NetworkPolicy } from '../wire/network-policy.ts';
import { raceSignal } from '../core/race-signal.ts';

const switchLimitMs = 30_000;

/** Replaces the policy of a running sandbox, within a limit of its own. */
export async function switchNetwork(
  environment: Environment,
  policy: NetworkPolicy,
  signal: AbortSignal,
): Promise<void> {
  using link = new LinkedAbort([signal], {
    ms: switchLimitMs,
    reason: () =>
      new RolloutError(
        'ENVIRONMENT_LOST',
        `the network policy was not switched within ${switchLimitMs / 1000} s`,
        { phase: 'environment', field: 'network_mode', remedy: 'Run the trial again.' },
      ),
  });
  await raceSignal(environment.setNetworkPolicy(policy, link.signal), link.signal);
}

/** Runs the verifier's phase under its own policy and restores the baseline after it, also on error; a cancelled trial needs no restoring. */
export async function underNetwork<T>(
  phase: {
    readonly environment: Environment;
    readonly baseline: NetworkPolicy;
    readonly policy: NetworkPolicy;
  },
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const { environment, baseline, policy } = phase;
  if (isSamePolicy(baseline, policy)) return await work();
  await switchNetwork(environment, policy, signal);
  try {
    return await work();
  } finally {
    if (!signal.aborted) await switchNetwork(environment, baseline, signal);
  }
}
