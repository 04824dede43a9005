import { RolloutError } from '../../../core/errors.ts';
import type { NetworkPolicy } from '../../../wire/network-policy.ts';
import type { EnvironmentSpec } from '../../environment.ts';

/**
 * How a sandbox is connected. `none` and `bridge` need nothing of ours; `own` is an internal network of the sandbox alone, with
 * our proxy and forwarder on its gateway address, joined by the engine's bridge while the policy is public.
 */
export type NetworkPlan =
  | { readonly kind: 'none' }
  | { readonly kind: 'bridge' }
  | {
      readonly kind: 'own';
      /** Some policy, now or later, is an allow list. */
      readonly wantsProxy: boolean;
      /** Some policy, now or later, is public: names must resolve then. */
      readonly hasPublicPhase: boolean;
    };

export function planNetwork(
  spec: Pick<EnvironmentSpec, 'network' | 'laterNetworks' | 'hostEndpoint'>,
): NetworkPlan {
  const modes = new Set([spec.network, ...spec.laterNetworks].map((policy) => policy.mode));
  const [only] = modes;
  if (spec.hostEndpoint === null && modes.size === 1 && only !== 'allowlist')
    return only === 'public' ? { kind: 'bridge' } : { kind: 'none' };
  return {
    kind: 'own',
    wantsProxy: modes.has('allowlist'),
    hasPublicPhase: modes.has('public'),
  };
}

/**
 * Whether a later policy changes anything on a network that was planned so, `first` being the policy of its start.
 * CAPABILITY_UNSUPPORTED when the plan did not reckon with it.
 */
export function needsChange(
  plan: NetworkPlan,
  first: NetworkPolicy,
  policy: NetworkPolicy,
): boolean {
  if (plan.kind !== 'own') {
    if (policy.mode === first.mode && policy.mode !== 'allowlist') return false;
    throw unprepared();
  }
  if (policy.mode === 'allowlist' && !plan.wantsProxy) throw unprepared();
  if (policy.mode === 'public' && !plan.hasPublicPhase) throw unprepared();
  return true;
}

function unprepared(): RolloutError {
  return new RolloutError(
    'CAPABILITY_UNSUPPORTED',
    'the sandbox was not prepared for this network policy',
    {
      phase: 'environment',
      field: 'environment.network_mode',
      remedy: 'Name every later policy when the sandbox is made.',
    },
  );
}
