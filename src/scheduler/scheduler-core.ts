import type { Admission, AdmissionLimits } from './admission.ts';
import type { Dispatcher } from './dispatcher.ts';
import type { FailurePause } from './failure-pause.ts';
import type { Ledger } from './ledger.ts';
import type { LiveRollout } from './live-rollout.ts';
import type { RolloutQueue } from './queue.ts';
import type { SchedulerOptions, SchedulerParts } from './scheduler-parts.ts';
import type { Tenants } from './tenants.ts';
import type { WaitLimits } from './wait-limits.ts';

/** What the stages of a scheduler share. */
export interface SchedulerCore {
  readonly parts: SchedulerParts;
  readonly options: SchedulerOptions;
  readonly limits: AdmissionLimits;
  readonly tenants: Tenants;
  readonly admission: Admission;
  readonly queue: RolloutQueue;
  readonly waitLimits: WaitLimits;
  readonly pause: FailurePause;
  readonly ledger: Ledger;
  readonly dispatcher: Dispatcher;
  /** By id: everything that has not ended or whose callbacks are under way. */
  readonly live: Map<string, LiveRollout>;
  /** Submissions whose acceptance is being written, by id. */
  readonly accepting: Map<string, Promise<unknown>>;
  /** Fires when no more is taken in. */
  readonly stopping: AbortSignal;
  /** Counts work that nobody awaits; it must not reject. */
  background(work: Promise<void>): void;
}

/** As `/health` names it. */
export function backendName({ parts: { backend } }: SchedulerCore): string {
  const { backend: name } = backend.health();
  return typeof name === 'string' ? name : backend.kind;
}

/** Nobody works with it any more, as far as the caller is concerned. */
export function letGo(rollout: LiveRollout, core: SchedulerCore): void {
  if (!rollout.letGo()) return;
  core.live.delete(rollout.id);
  core.ledger.tell(rollout, { type: 'settled' });
}
