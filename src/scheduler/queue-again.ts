import type { LiveRollout } from './live-rollout.ts';
import type { Mover } from './rollout-state.ts';
import type { SchedulerCore } from './scheduler-core.ts';

/** A rollout that runs, and of whose agent nothing has happened, waits again, the attempt not counted. False = it does not: its agent has begun, or somebody else ends it. */
export async function queueAgain(
  rollout: LiveRollout,
  by: Mover,
  { ledger }: Pick<SchedulerCore, 'ledger'>,
): Promise<boolean> {
  return await ledger.advance(rollout, () => {
    // Asked when everything before is written: an agent that began in the last moment has begun.
    const { endedBy, hasAgentBegun, state } = rollout;
    if ((endedBy !== null && endedBy !== by) || hasAgentBegun || state !== 'running') return null;
    const attempt = Math.max(0, rollout.attempt - 1);
    return { to: 'queued', by, set: { startedAt: null, attempt } };
  });
}
