/**
 * The abort that all drivers share. Its order: the gate is closed, so that nothing starts any more; one pass over every engine ends what they work on; the
 * agent's hook reaches the agents, which would ask the engines again otherwise; further passes until the engines have nothing left; and a drain that
 * waits for every rollout, for so long and no longer. Each step is bounded by itself; what fails stands in the receipt and stops nothing.
 */
import type { CollectorParts } from '../collector-parts.ts';
import type { MemberRun } from '../pool/member-run.ts';
import type { AbortReason, AbortReceipt, RolloutReceipt } from './abort-receipt.ts';
import type { AbortScope } from './abort-scope.ts';
import { callHook, type HookCall } from './call-hook.ts';
import { drain } from './drain.ts';
import { EnginePasses } from './engine-passes.ts';

type AbortParts = Pick<
  CollectorParts,
  'options' | 'fleet' | 'findHook' | 'clock' | 'logger' | 'observe'
>;

/** Never rejects. The gate stays closed: whoever collects again opens it. */
export async function abortPool(
  pool: AbortScope,
  reason: AbortReason,
  parts: AbortParts,
): Promise<AbortReceipt> {
  const { clock, observe, logger } = parts;
  const at = clock.now();
  const beganMs = clock.monotonicMs();
  const runs = pool.runs;
  const running = new Set(runs.filter(({ state }) => state === 'running'));
  observe({ type: 'abort:started', reason, live: running.size });
  pool.close();
  const engines = new EnginePasses(parts);
  await engines.first();
  const rolloutIds = [...running].map(({ request }) => request.rolloutId);
  const call = await callHook({ reason, rolloutIds }, parts);
  await engines.untilIdle();
  await drain(pool, parts);
  const rollouts = runs.map((run) => receiptOf(run, { call, beganMs }));
  const receipt: AbortReceipt = {
    ...{ reason, at, rollouts, durationMs: clock.monotonicMs() - beganMs },
    ...{
      discoveryProblem: engines.discoveryProblem,
      engines: engines.receipts,
      hook: call.receipt,
    },
    isComplete:
      engines.isIdle &&
      rollouts.every(({ how, confirmed }) => how !== 'abandoned' && confirmed?.isGone !== false),
  };
  if (!receipt.isComplete) logger.log('warn', 'an abort is not complete', summaryOf(receipt));
  observe({ type: 'abort:ended', receipt });
  return receipt;
}

function receiptOf(
  run: MemberRun,
  { call, beganMs }: { readonly call: HookCall; readonly beganMs: number },
): RolloutReceipt {
  const { rolloutId, groupIndex } = run.request;
  return {
    ...{ rolloutId, groupIndex, how: howOf(run) },
    afterMs: Math.max(0, run.endedMs - beganMs),
    confirmed: call.confirmed.get(rolloutId) ?? null,
  };
}

function howOf(run: MemberRun): RolloutReceipt['how'] {
  switch (run.state) {
    case 'turned-away':
    case 'waiting':
      return 'not-started';
    case 'abandoned':
    case 'running':
      return 'abandoned';
    case 'ended':
      return run.isCutOff ? 'ended' : 'finished';
  }
}

function summaryOf({ rollouts, engines, hook, discoveryProblem }: AbortReceipt) {
  return {
    abandoned: rollouts.filter(({ how }) => how === 'abandoned').map(({ rolloutId }) => rolloutId),
    unconfirmed: rollouts.filter(({ confirmed }) => confirmed?.isGone === false).length,
    engines: engines.filter(({ problem, load }) => problem !== null || (load ?? 0) > 0),
    ...{ hook: hook.state, discoveryProblem },
  };
}
