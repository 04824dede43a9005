/**
 * What an earlier life of the server left: rollouts whose agent had not begun wait again, with the attempt not counted; others end as a failure, whatever
 * had been fixed of them staying as it is; callbacks that were not delivered go out, byte for byte.
 */
import { messageOf } from '../core/errors.ts';
import type { StoredRollout } from '../store/rollout-store.ts';
import { LiveRollout } from './live-rollout.ts';
import { interrupted } from './outcomes.ts';
import { endAsFailure, seeThrough } from './own-ends.ts';
import type { SchedulerCore } from './scheduler-core.ts';
import { enqueue, waitLimitMs } from './submission.ts';

export async function recoverRollouts(core: SchedulerCore): Promise<number> {
  const { store, callbacks, logger } = core.parts;
  const { live, pending } = await store.recover();
  const rollouts = live.map((stored) => ({ stored, rollout: revive(stored, core) }));
  const lastSeq = new Map<string, number>();
  for (const { rolloutId, seq } of pending) lastSeq.set(rolloutId, seq);
  for (const { rollout } of rollouts) rollout.lastSeq = lastSeq.get(rollout.id) ?? 0;
  callbacks.enqueue(pending);
  const hasBegun = ({ stored }: (typeof rollouts)[number]): boolean =>
    stored.hasAgentBegun || stored.state === 'grading';
  const taken = await Promise.allSettled(
    rollouts.map((one) =>
      hasBegun(one) ? interrupt(one.rollout, core) : giveBack(one.rollout, core),
    ),
  );
  // In the order of acceptance, whether they had left the queue or not.
  for (const one of rollouts) if (!hasBegun(one)) await enqueue(one.rollout, core);
  // One that cannot be taken up does not keep the others from it; it is tried again by the next start.
  for (const one of taken)
    if (one.status === 'rejected')
      logger.log('error', 'a rollout was not taken up', { error: messageOf(one.reason) });
  return rollouts.length;
}

function revive(stored: StoredRollout, core: SchedulerCore): LiveRollout {
  const { clock } = core.parts;
  const { id, tenant, acceptedAt, state, attempt } = stored;
  const waitedMs = Math.max(0, clock.now().getTime() - acceptedAt.getTime());
  const rollout = new LiveRollout({
    ...{ id, tenant, acceptedAt, state, attempt },
    acceptedMs: clock.monotonicMs() - waitedMs,
    waitMs: waitLimitMs(agentTimeoutOf(stored.request), core),
    reservation: core.admission.force(tenant),
  });
  rollout.hasAgentBegun = stored.hasAgentBegun;
  rollout.hasCompleted = stored.completedAt !== null;
  core.live.set(id, rollout);
  core.ledger.tell(rollout, { type: 'queued' });
  return rollout;
}

/** The whole request is read when the rollout starts: thousands may have waited. */
function agentTimeoutOf(request: string): number | null {
  try {
    const { agent_timeout_sec: seconds } = JSON.parse(request) as { agent_timeout_sec?: unknown };
    const value = typeof seconds === 'string' ? Number(seconds) : seconds;
    return typeof value === 'number' && Number.isFinite(value) ? value : null;
  } catch {
    // It fails when it starts, where that is its own affair.
    return null;
  }
}

async function giveBack(rollout: LiveRollout, core: SchedulerCore): Promise<void> {
  if (rollout.state === 'queued') return;
  await core.ledger.advance(rollout, () => ({
    ...{ to: 'queued', by: 'recovery' },
    set: { startedAt: null, attempt: Math.max(0, rollout.attempt - 1) },
  }));
}

async function interrupt(rollout: LiveRollout, core: SchedulerCore): Promise<void> {
  rollout.claim('recovery');
  const failure = interrupted(rollout.state === 'grading' ? 'verifier' : 'agent');
  const work = endAsFailure(rollout, { by: 'recovery', failure }, core);
  rollout.ending = work;
  core.background(seeThrough(rollout, work, core));
  await work;
}
