import type { CancelReceipt } from '../wire/rollout/receipt.ts';
import type { RolloutOutcome } from '../wire/rollout/rollout-outcome.ts';
import type { NewEvent, NewRollout, StoredRollout } from './rollout-store.ts';

/** A rollout as it is when it was accepted. */
export function acceptedRollout(rollout: NewRollout): StoredRollout {
  return {
    ...rollout,
    state: 'queued',
    attempt: 0,
    hasAgentBegun: false,
    startedAt: null,
    completedAt: null,
    endedAt: null,
    outcome: null,
    controllerReport: null,
    isTombstone: false,
  };
}

/** The event that is written with every acceptance. */
export function queuedEvent(rollout: NewRollout): NewEvent {
  const { id, tenant, acceptedAt } = rollout;
  return { rolloutId: id, tenant, type: 'rollout:queued', at: acceptedAt, payload: {} };
}

export interface Tombstone {
  readonly id: string;
  readonly tenant: string;
  readonly receipt: CancelReceipt;
}

/** What an id that was cancelled before it came is kept as. It has no digest: no request is the same as none. */
export function buriedRollout({ id, tenant, receipt }: Tombstone): StoredRollout {
  return {
    ...acceptedRollout({ id, tenant, request: '', digest: '', acceptedAt: receipt.at }),
    state: 'cancelled',
    endedAt: receipt.at,
    outcome: cancelledBeforeItCame,
    isTombstone: true,
  };
}

const cancelledBeforeItCame: RolloutOutcome = {
  status: 'cancelled',
  reward: null,
  errMessage: 'cancelled before it was submitted',
  errCategory: null,
  stage: 'queue',
  cause: 'CANCELLED',
  trainable: false,
  retryable: false,
  verdict: null,
};

/** What an id that exists means for a request with `digest`. */
export function repeatKind(
  known: StoredRollout,
  digest: string,
): 'same' | 'different' | 'tombstone' {
  if (known.isTombstone) return 'tombstone';
  return known.digest === digest ? 'same' : 'different';
}
