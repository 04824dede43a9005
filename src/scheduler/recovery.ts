/**
 * What an earlier life of the server left: rollouts whose agent had not begun wait again, with the attempt not counted; others end as a failure, whatever
 * had been fixed of them staying as it is; callbacks that were not delivered go out, byte for byte, and hold their rollout's place as they did before.
 * The time of a rollout runs from its acceptance, whatever happened to the server: its controller's does.
 */
import { firstRoundAttempts } from '../callbacks/retry-schedule.ts';
import { messageOf } from '../core/errors.ts';
import type { DeliveringRollout, PendingDelivery, StoredRollout } from '../store/rollout-store.ts';
import { trainsNothing, wantsSamples } from '../wire/rollout/train-rules.ts';
import { archiveLeftCalls, leftCalls } from './left-calls.ts';
import { LiveRollout, type LiveRolloutOptions } from './live-rollout.ts';
import { interrupted } from './outcomes.ts';
import { queueAgain } from './queue-again.ts';
import { endAsFailure, endByWaitLimit, seeThrough } from './own-ends.ts';
import type { SchedulerCore } from './scheduler-core.ts';
import { enqueue, waitLimitMs } from './submission.ts';

export async function recoverRollouts(core: SchedulerCore): Promise<number> {
  const { store, callbacks, logger } = core.parts;
  const { live, delivering, pending } = await store.recover();
  const left = await leftCalls(new Set(live.map(({ id }) => id)), core);
  const rollouts = live.map((stored) => ({ stored, rollout: revive(stored, core) }));
  const lastSeq = new Map<string, number>();
  for (const { rolloutId, seq } of pending) lastSeq.set(rolloutId, seq);
  for (const { rollout } of rollouts) rollout.lastSeq = lastSeq.get(rollout.id) ?? 0;
  callbacks.enqueue(pending);
  for (const ended of stillHolding(delivering, pending)) holdUntilSettled(ended, core);
  const hasBegun = ({ stored }: (typeof rollouts)[number]): boolean =>
    stored.hasAgentBegun || stored.state === 'grading';
  const taken = await Promise.allSettled(
    rollouts.map((one) =>
      hasBegun(one) ? interrupt(one.rollout, core) : giveBack(one.rollout, core),
    ),
  );
  // In the order of acceptance, whether they had left the queue or not.
  for (const one of rollouts) if (!hasBegun(one)) await takeUp(one.rollout, core);
  core.background(archiveLeftCalls(left, core));
  // One that cannot be taken up does not keep the others from it; it is tried again by the next start.
  for (const one of taken)
    if (one.status === 'rejected')
      logger.log('error', 'a rollout was not taken up', { error: messageOf(one.reason) });
  return rollouts.length;
}

function revive(stored: StoredRollout, core: SchedulerCore): LiveRollout {
  const { agentTimeoutS, metadata } = looked(stored.request);
  const rollout = taken(stored, core, {
    waitMs: waitLimitMs(agentTimeoutS, core),
    wantsSamples: wantsSamples(metadata, core.options.train ?? trainsNothing),
  });
  rollout.hasAgentBegun = stored.hasAgentBegun;
  rollout.hasCompleted = stored.completedAt !== null;
  core.ledger.tell(rollout, { type: 'queued' });
  return rollout;
}

function taken(
  stored: DeliveringRollout,
  core: SchedulerCore,
  wishes: Pick<LiveRolloutOptions, 'waitMs' | 'wantsSamples'>,
): LiveRollout {
  const { clock } = core.parts;
  const { id, tenant, acceptedAt, state, attempt } = stored;
  const waitedMs = Math.max(0, clock.now().getTime() - acceptedAt.getTime());
  const rollout = new LiveRollout({
    ...{ id, tenant, acceptedAt, state, attempt, ...wishes },
    acceptedMs: clock.monotonicMs() - waitedMs,
    reservation: core.admission.force(tenant),
  });
  core.live.set(id, rollout);
  return rollout;
}

/** A first round that was over in an earlier life has freed its rollout's place: the receiver is gone, and many may wait for it. */
function stillHolding(
  delivering: readonly DeliveringRollout[],
  pending: readonly PendingDelivery[],
): readonly DeliveringRollout[] {
  const freed = new Set(
    pending.filter(({ attempts }) => attempts >= firstRoundAttempts).map((one) => one.rolloutId),
  );
  return delivering.filter(({ id }) => !freed.has(id));
}

/** The sender says when: no later than a first round of silence takes. */
function holdUntilSettled(ended: DeliveringRollout, core: SchedulerCore): void {
  const rollout = taken(ended, core, { waitMs: 0, wantsSamples: false });
  rollout.claim('recovery');
  core.background(seeThrough(rollout, Promise.resolve(), core));
}

/** The whole request is read when the rollout starts: thousands may have waited. */
function looked(request: string): {
  readonly agentTimeoutS: number | null;
  readonly metadata: unknown;
} {
  try {
    const { agent_timeout_sec: seconds, metadata } = JSON.parse(request) as {
      agent_timeout_sec?: unknown;
      metadata?: unknown;
    };
    const value = typeof seconds === 'string' ? Number(seconds) : seconds;
    const isNumber = typeof value === 'number' && Number.isFinite(value);
    return { agentTimeoutS: isNumber ? value : null, metadata };
  } catch {
    // It fails when it starts, where that is its own affair.
    return { agentTimeoutS: null, metadata: null };
  }
}

async function giveBack(rollout: LiveRollout, core: SchedulerCore): Promise<void> {
  if (rollout.state !== 'queued') await queueAgain(rollout, 'recovery', core);
}

/** One that has waited too long meanwhile does not start: nobody waits for it any more. */
async function takeUp(rollout: LiveRollout, core: SchedulerCore): Promise<void> {
  const waitedMs = core.parts.clock.monotonicMs() - rollout.acceptedMs;
  if (rollout.state === 'queued' && waitedMs >= rollout.waitMs) endByWaitLimit(rollout.id, core);
  else await enqueue(rollout, core);
}

async function interrupt(rollout: LiveRollout, core: SchedulerCore): Promise<void> {
  rollout.claim('recovery');
  const failure = interrupted(rollout.state === 'grading' ? 'verifier' : 'agent');
  const work = endAsFailure(rollout, { by: 'recovery', failure }, core);
  rollout.ending = work;
  core.background(seeThrough(rollout, work, core));
  await work;
}
