/**
 * Why a rollout is not moving: from what is known about it, and about the server, to one answer. Pure: whoever asks brings the facts. Doctor, API and
 * metrics say the same because they all ask here.
 */
import type { DeliveryActivity } from '../callbacks/callback-delivery.ts';
import type { Diagnosis } from '../wire/rollout/diagnosis.ts';
import type { ExecutionProbe } from '../backends/execution-backend.ts';
import type { AdmissionView, RolloutView } from './rollout-service.ts';

export interface DiskFacts {
  /** Of the data folder. */
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** Below this the server accepts no more. */
  readonly floorBytes: number;
}

export interface ServerFacts {
  readonly admission: AdmissionView;
  /** null = it could not be looked at. */
  readonly disk: DiskFacts | null;
  readonly now: Date;
}

export interface RolloutFacts extends ServerFacts {
  readonly view: RolloutView;
  /** What its callbacks do now; null = none is under way. */
  readonly delivery: DeliveryActivity | null;
  /** null = the backend has nothing to look at, or the rollout does not execute. */
  readonly probe: ExecutionProbe | null;
}

/** Of one rollout. */
export function diagnoseRollout(facts: RolloutFacts): Diagnosis {
  return {
    rolloutId: facts.view.rollout.id,
    kind: 'unclear',
    owner: null,
    waitingOn: null,
    since: null,
    deadline: null,
    evidence: [],
    remedy: null,
  };
}

/** Of the server as a whole: what holds up every rollout, also those that are refused and so have no view. Empty = nothing. */
export function diagnoseServer(facts: ServerFacts): readonly Diagnosis[] {
  return facts.disk === null ? [] : [];
}
