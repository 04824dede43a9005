/** Ends of rollouts that the scheduler brings about itself: the wait was too long, the server died, the server stops. */
import { traceOf } from '../core/errors.ts';
import { rolloutRequestSchema } from '../wire/rollout/rollout-request.ts';
import { isTerminal } from '../wire/rollout/rollout-state.ts';
import { archiveWithCalls, rolloutFacts, secretsOf } from './archiving.ts';
import { failureDeliveries, ownDiagnostics } from './deliveries.ts';
import type { LiveRollout } from './live-rollout.ts';
import { failedOutcome, queueTimeout, type OwnFailure } from './outcomes.ts';
import type { Mover } from './rollout-state.ts';
import { endWithoutSamples } from './samples-of-run.ts';
import { backendName, letGo, type SchedulerCore } from './scheduler-core.ts';

export interface OwnEnd {
  readonly by: Mover;
  readonly failure: OwnFailure;
}

/** Fixes the failure and sends its callbacks out. The caller has claimed the rollout. */
export async function endAsFailure(
  rollout: LiveRollout,
  { by, failure }: OwnEnd,
  core: SchedulerCore,
): Promise<void> {
  const { ledger, parts, options } = core;
  const { id, acceptedAt } = rollout;
  const stored = await ledger.patiently(rollout, () => parts.store.rollout(id));
  if (stored === null) throw new TypeError('the store does not know a live rollout');
  const request = rolloutRequestSchema.parse(JSON.parse(stored.request));
  const outcome = endWithoutSamples(failedOutcome(failure), rollout);
  const diagnostics = ownDiagnostics(outcome, backendName(core));
  const isEnded = await ledger.advance(rollout, () =>
    isTerminal(rollout.state)
      ? null
      : {
          ...{ to: 'failure', by, outcome, diagnostics },
          ...(!rollout.hasCompleted && { set: { completedAt: parts.clock.now() } }),
          deliveries: failureDeliveries(
            { id, acceptedAt, request },
            { failure, diagnostics, hasCompleted: rollout.hasCompleted },
          ),
        },
  );
  if (!isEnded) return;
  rollout.diagnostics = diagnostics;
  const facts = rolloutFacts({ id, request, outcome, version: options.version }, [
    { sample: null, diagnostics, trajectory: null },
  ]);
  await archiveWithCalls(facts, { files: [], secrets: secretsOf(request) }, parts);
}

/** Holds the rollout until its callbacks are settled. Never rejects. */
export async function seeThrough(
  rollout: LiveRollout,
  work: Promise<unknown>,
  core: SchedulerCore,
): Promise<void> {
  const { callbacks, logger } = core.parts;
  rollout.hold();
  try {
    await work;
    await callbacks.settled(rollout.id);
  } catch (error) {
    logger.log('error', 'a rollout could not be ended', {
      rolloutId: rollout.id,
      error: traceOf(error),
    });
  }
  letGo(rollout, core);
}

/** The rollout waited as long as it may: it ends without starting. */
export function endByWaitLimit(id: string, core: SchedulerCore): void {
  const rollout = core.live.get(id);
  if (rollout?.state !== 'queued' || !rollout.claim('deadline')) return;
  const work = (async () => {
    await core.queue.remove(id);
    const end: OwnEnd = { by: 'deadline', failure: queueTimeout(rollout.waitMs) };
    await endAsFailure(rollout, end, core);
  })();
  rollout.ending = work;
  core.background(seeThrough(rollout, work, core));
}
