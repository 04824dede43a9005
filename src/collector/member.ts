/** A member is one place of a group: one rollout of the group's prompt, and another one where that was lost. */
import type { DatasetRow } from './dataset/dataset-row.ts';
import type { TrainingSample } from './training-sample.ts';

/** What a rollout port is asked to roll out. */
export interface MemberRequest {
  /** Unique; the only name that abort, receipts and logs use. */
  readonly rolloutId: string;
  readonly groupIndex: number;
  /** Place in the group, from 0. */
  readonly memberIndex: number;
  /** Counts members over the whole run, in the order of the dataset. */
  readonly index: number;
  /** From 1; more than 1 = an earlier attempt was lost. */
  readonly attempt: number;
  readonly row: DatasetRow;
  /** Version of the weights when it was started; null = no trainer has named one. */
  readonly weightVersion: number | null;
  /** For deterministic sampling: the run's seed and the place in the group; null = none is asked for. */
  readonly seed: number | null;
  /** What an earlier round sampled before it was cut off; a port that cannot go on from it begins anew. */
  readonly resume: readonly TrainingSample[];
}

/**
 * Why a member has no usable result. `infrastructure`: machine, sandbox, engine or network; another attempt may succeed. `task`: the row itself is
 * wrong; every attempt ends so. `agent`: the agent's own failure. `verifier`: the work could not be judged. `cancelled`: somebody ended it.
 */
export type MemberFault = 'infrastructure' | 'task' | 'agent' | 'verifier' | 'cancelled';

/** How a rollout ended, once and for all. */
export interface MemberEnd {
  /** `aborted`: cut off, its samples are partial. `failed`: see `fault`. The other two are the policy's own. */
  readonly status: 'completed' | 'truncated' | 'aborted' | 'failed';
  /** null only where nothing went wrong. */
  readonly fault: MemberFault | null;
  /** Code or word for reports, of a small set: `ENVIRONMENT_LOST`, `no-calls`; null = none. */
  readonly cause: string | null;
  /** One sentence for people; null = none. Never a secret. */
  readonly message: string | null;
  readonly isRetryable: boolean;
  /** Finite. null = nobody has judged it (yet): reward hooks may. Never invented. */
  readonly reward: number | null;
  readonly samples: readonly TrainingSample[];
  /** What agent and verifier report beside it, for hooks. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** A member as a group hands it over. */
export interface CollectedMember {
  readonly request: MemberRequest;
  readonly end: MemberEnd;
  /** The number to train with; null only in a group that needs none. */
  readonly reward: number | null;
  /** Out of the loss and out of the group's baseline: its place is kept, nothing of it counts. */
  readonly isMasked: boolean;
  /** It stays in the batch and in the baseline, but all of its loss is zero: a sample filter said so. */
  readonly isRemoved: boolean;
  /** Rollouts that were started for this place, lost ones included. */
  readonly attempts: number;
  /** Of the attempt that counts. */
  readonly durationMs: number;
}
