/** Stopping in stages: what runs may go on for a while, then what is left is ended: back to the queue where no agent had begun, else as a failure. */
import { LinkedAbort } from '../core/linked-abort.ts';
import { RolloutError } from '../core/errors.ts';
import { isTerminal } from '../wire/rollout/rollout-state.ts';
import { phaseOf } from './cancellation.ts';
import type { LiveRollout } from './live-rollout.ts';
import { stopping } from './outcomes.ts';
import { endAsFailure, seeThrough } from './own-ends.ts';
import { queueAgain } from './queue-again.ts';
import type { SchedulerCore } from './scheduler-core.ts';

/** Resolves when nothing runs, or `ms` are over, or `hurry` fires. */
export async function drain(
  options: { readonly ms: number; readonly hurry: AbortSignal },
  core: SchedulerCore,
): Promise<void> {
  await soon(core.dispatcher.idle(), options, core);
}

/** Resolves when what was left is gone and its callbacks are settled, or `ms` are over. What is not done by then is found by the next start. */
export async function abortRest(
  { ms, hurry }: { readonly ms: number; readonly hurry: AbortSignal },
  core: SchedulerCore,
): Promise<void> {
  const ends = core.dispatcher.runningRollouts.map((rollout) => abort(rollout, core));
  await soon(Promise.all([...ends, core.dispatcher.idle()]), { ms, hurry }, core);
}

async function abort(rollout: LiveRollout, core: SchedulerCore): Promise<void> {
  const { gateway } = core.parts;
  // Somebody is ending it already.
  if (!rollout.claim('shutdown')) return;
  const reason = new RolloutError('SERVER_STOPPING', 'the server is shutting down', {
    phase: phaseOf(rollout),
  });
  const gone = Promise.allSettled([
    gateway.abort(rollout.id),
    rollout.execution?.abort(reason) ?? Promise.resolve(null),
  ]);
  const work = (async () => {
    await giveBackOrEnd(rollout, core);
    await gone;
  })();
  rollout.ending = work;
  const seen = seeThrough(rollout, work, core);
  core.background(seen);
  await seen;
}

async function giveBackOrEnd(rollout: LiveRollout, core: SchedulerCore): Promise<void> {
  const isGivenBack = await queueAgain(rollout, 'shutdown', core);
  if (isGivenBack || rollout.state === 'queued' || isTerminal(rollout.state)) return;
  await endAsFailure(rollout, { by: 'shutdown', failure: stopping(phaseOf(rollout)) }, core);
}

/** Resolves when `work` has ended, however that was, or `ms` are over, or `hurry` fires. */
export async function soon(
  work: Promise<unknown>,
  { ms, hurry }: { readonly ms: number; readonly hurry: AbortSignal },
  core: SchedulerCore,
): Promise<void> {
  using timer = new LinkedAbort([hurry]);
  const over = core.parts.clock
    .sleep(Math.min(ms, 2 ** 31 - 1), timer.signal)
    .catch(() => undefined);
  await Promise.race([work.catch(() => undefined), over]);
  timer.abort(new Error('not needed any more'));
}
