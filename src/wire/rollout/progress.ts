/** Where a live rollout is and what it waits for: the answer to "why is it not moving?". */

/** What can be waited for. Closed: doctor, metrics and documents know every one. */
export type WaitKind =
  | 'admission'
  | 'paused'
  | 'task'
  | 'image-build'
  | 'sandbox-create'
  | 'healthcheck'
  | 'agent-setup'
  | 'agent'
  | 'agent-input'
  | 'engine'
  | 'verifier'
  | 'collect'
  | 'sandbox-destroy'
  | 'workflow'
  | 'grader'
  | 'callback'
  | 'archive'
  | 'disk';

export interface WaitingOn {
  readonly kind: WaitKind;
  /** Who has to act: `scheduler`, `operator`, `controller`, `engine`, `environment docker`, `agent terminus-2`, `task`, `verifier`. */
  readonly owner: string;
  /** One sentence for a person; never a secret. */
  readonly detail: string | null;
  readonly since: Date;
  /** When the wait ends by itself; null = no limit of its own. */
  readonly deadline: Date | null;
}

export interface RolloutProgress {
  /** For people: `running agent`. */
  readonly stage: string;
  readonly waitingOn: WaitingOn | null;
  /** When something last happened: a stage, a line of a build, bytes of a model call. */
  readonly lastProgressAt: Date;
}
