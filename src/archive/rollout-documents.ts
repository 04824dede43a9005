/** The documents that a finished rollout leaves in the archive, by file name: pure, no I/O. */
import type { SampledCall } from '../trajectory/token-ids.ts';
import type { CallbackStatus, Sample } from '../wire/rollout/callback-payloads.ts';
import type { RolloutOutcome } from '../wire/rollout/rollout-outcome.ts';
import { rolloutTrajectory } from './rollout-trajectory.ts';

export interface RolloutFacts {
  readonly rolloutId: string;
  readonly label: string | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** The request's own. */
  readonly extraFields: Readonly<Record<string, unknown>> | null;
  readonly outcome: RolloutOutcome;
  readonly result: {
    readonly status: CallbackStatus;
    readonly sample: Sample | null;
    readonly diagnostics: Readonly<Record<string, unknown>> | null;
    readonly trajectory: Readonly<Record<string, unknown>> | null;
  };
  /** `trajectory` of the latest acknowledgement that had one, as it came; null = none. */
  readonly report: unknown;
  /** Of this program. */
  readonly version: string;
}

export interface RolloutDocuments {
  /** `outcome.json` always; `diagnostics.json` and `trajectory.json` where there is something to say. */
  readonly documents: Readonly<Record<string, unknown>>;
  /** For the log: what could not be used. */
  readonly warnings: readonly string[];
}

/** `calls`: what the gateway has kept of the agent's, for a trajectory that has no token ids. */
export function rolloutDocuments(
  facts: RolloutFacts,
  calls: readonly SampledCall[] = [],
): RolloutDocuments {
  const { trajectory, warnings } = rolloutTrajectory(facts, calls);
  const { diagnostics } = facts.result;
  return {
    documents: {
      'outcome.json': facts.outcome,
      ...(diagnostics !== null && { 'diagnostics.json': diagnostics }),
      ...(trajectory !== null && { 'trajectory.json': trajectory }),
    },
    warnings,
  };
}
