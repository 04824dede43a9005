/**
 * The life of a rollout. `queued`, `running` and `grading` are live; `success`, `failure` and `cancelled` are ends, and nothing leads out of an end.
 * Whoever changes a state names itself; a change that is not a row of the table is a defect and throws. `docs/lifecycle.md` shows the same table.
 */
import type { RolloutState } from '../wire/rollout/rollout-state.ts';

/** Who moves a rollout: `deadline` is the limit of its wait, `recovery` the start after a death of the server. */
export type Mover =
  'admission' | 'dispatcher' | 'backend' | 'controller' | 'deadline' | 'recovery' | 'shutdown';

export interface Transition {
  /** null = the server did not know it. */
  readonly from: RolloutState | null;
  readonly to: RolloutState;
  readonly by: Mover;
  /** Type of the event that is stored with the change; null = none, nobody waits for it. */
  readonly event:
    | 'rollout:queued'
    | 'rollout:started'
    | 'rollout:requeued'
    | 'rollout:completed'
    | 'rollout:ended'
    | null;
}

const row = (
  from: Transition['from'],
  to: Transition['to'],
  by: Mover,
  event: Transition['event'],
): Transition => ({ from, to, by, event });

// A table reads best with one row per line.
// prettier-ignore
export const transitions: readonly Transition[] = [
  row(null, 'queued', 'admission', 'rollout:queued'),
  row(null, 'cancelled', 'controller', null),
  row('queued', 'running', 'dispatcher', 'rollout:started'),
  row('queued', 'failure', 'deadline', 'rollout:ended'),
  row('queued', 'failure', 'dispatcher', 'rollout:ended'),
  row('queued', 'cancelled', 'controller', 'rollout:ended'),
  row('running', 'queued', 'dispatcher', 'rollout:requeued'),
  row('running', 'queued', 'shutdown', 'rollout:requeued'),
  row('running', 'queued', 'recovery', 'rollout:requeued'),
  row('running', 'grading', 'backend', 'rollout:completed'),
  row('running', 'success', 'backend', 'rollout:ended'),
  row('running', 'failure', 'backend', 'rollout:ended'),
  row('running', 'failure', 'dispatcher', 'rollout:ended'),
  row('running', 'failure', 'shutdown', 'rollout:ended'),
  row('running', 'failure', 'recovery', 'rollout:ended'),
  row('running', 'cancelled', 'controller', 'rollout:ended'),
  row('grading', 'success', 'backend', 'rollout:ended'),
  row('grading', 'failure', 'backend', 'rollout:ended'),
  row('grading', 'failure', 'dispatcher', 'rollout:ended'),
  row('grading', 'failure', 'shutdown', 'rollout:ended'),
  row('grading', 'failure', 'recovery', 'rollout:ended'),
  row('grading', 'cancelled', 'controller', 'rollout:ended'),
];

/** Throws when the table has no such row. */
export function transition(from: RolloutState | null, to: RolloutState, by: Mover): Transition {
  const found = transitions.find((one) => one.from === from && one.to === to && one.by === by);
  if (found !== undefined) return found;
  throw new TypeError(`a rollout cannot go from ${from ?? 'nothing'} to ${to} by ${by}`);
}
