import type { RolloutFacts } from '../diagnosis.ts';
import { after, durationText, msSince, ordinaryWaitMs, type Finding } from './finding.ts';

/** null = no callback of the rollout is due. */
export function deliveryFinding(facts: RolloutFacts): Finding | null {
  const { view, delivery, now } = facts;
  if (view.rollout.state === 'cancelled') return null;
  const remedy =
    'See whether the receiver runs and answers; what is given up is kept: `slipway callbacks ls`, `slipway callbacks replay`.';
  const dead = view.deliveries.find(({ state }) => state === 'dead');
  if (dead !== undefined && delivery === null)
    return {
      kind: 'callback-blocked',
      owner: 'controller',
      waitingOn: `somebody to replay the ${dead.channel} callback`,
      since: dead.lastAttemptAt ?? dead.createdAt,
      evidence: [
        `given up after ${dead.attempts} attempts${dead.lastError === null ? '' : `, the last: ${dead.lastError}`}`,
      ],
      remedy,
    };
  const pending = view.deliveries.find(({ state }) => state === 'pending');
  if (delivery === null && pending === undefined) return null;
  const channel = delivery?.channel ?? pending?.channel ?? 'completion';
  const since = delivery?.since ?? pending?.createdAt ?? now;
  const attempts = Math.max(delivery?.attempts ?? 0, pending?.attempts ?? 0);
  const lastError = delivery?.lastError ?? pending?.lastError ?? null;
  const finding: Finding = {
    kind: 'callback-blocked',
    owner: 'controller',
    waitingOn: `the ${channel} callback to be taken by ${delivery?.receiver ?? 'its receiver'}`,
    since,
    evidence: [
      `under way for ${durationText(msSince(since, now))}, ${attempts} attempts`,
      ...(lastError === null ? [] : [`the last attempt: ${lastError}`]),
      ...(delivery?.nextAttemptAt == null
        ? []
        : [`the next attempt is at ${delivery.nextAttemptAt.toISOString()}`]),
    ],
    remedy,
  };
  return lastError === null ? after(ordinaryWaitMs, finding, now) : finding;
}
