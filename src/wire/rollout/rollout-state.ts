/** The states of a rollout, as they are on the wire. `unknown` is an answer about an id, never a state. */
export const rolloutStates = [
  'queued',
  'running',
  'grading',
  'success',
  'failure',
  'cancelled',
] as const;

export type RolloutState = (typeof rolloutStates)[number];

export function isTerminal(state: RolloutState): boolean {
  return state === 'success' || state === 'failure' || state === 'cancelled';
}
