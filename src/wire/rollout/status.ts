import type { RolloutState } from './rollout-state.ts';

/** `GET /rollout/{id}/status`, always 200. */
export function statusDocument(status: {
  readonly rolloutId: string;
  readonly status: RolloutState | 'unknown';
  readonly reward: number | null;
  readonly errMessage: string | null;
}): Readonly<Record<string, unknown>> {
  return {
    rollout_id: status.rolloutId,
    status: status.status,
    reward: status.reward,
    err_message: status.errMessage,
  };
}
