import { samplesDocumentOf, type RolloutSamples } from './rollout-samples.ts';
import type { RolloutState } from './rollout-state.ts';

/** `GET /rollout/{id}/status`, always 200. Its protocol has four fields: a fifth is there only where somebody wants samples. */
export function statusDocument(status: {
  readonly rolloutId: string;
  readonly status: RolloutState | 'unknown';
  readonly reward: number | null;
  readonly errMessage: string | null;
  readonly samples?: RolloutSamples;
}): Readonly<Record<string, unknown>> {
  return {
    rollout_id: status.rolloutId,
    status: status.status,
    reward: status.reward,
    err_message: status.errMessage,
    ...(status.samples !== undefined && { samples: samplesDocumentOf(status.samples) }),
  };
}
