/** Carries out one order in a worker within a limit. What overruns is told so through its signal, and ended with its worker if it goes on. */
import { messageOf } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { raceSignal } from '../../core/race-signal.ts';
import { thrown, workerLost, type LocalFailure, type UserPart } from './local-result.ts';
import { WorkerEnded, type RolloutWorker } from './rollout-worker.ts';
import type { ThreadOrder, ThreadReport } from './thread-messages.ts';

/** For code that heeds its signal. */
const graceMs = 250;

/** A limit of the user's code has passed. */
export class Overrun extends Error {
  override readonly name = 'Overrun';
}

export interface LimitedOrder {
  readonly part: UserPart;
  readonly order: ThreadOrder;
  /** Fires with an {@link Overrun} at the limit, or with another reason when the rollout is aborted. */
  readonly signal: AbortSignal;
  /** From now on. */
  readonly limitMs: number;
  readonly overrun: () => LocalFailure;
}

/** `isIdle`: the worker can serve another rollout. */
export type OrderEnd =
  | { readonly failure: LocalFailure; readonly isIdle: boolean }
  | { readonly sample: string | null; readonly isIdle: boolean };

/** Rejects only with the reason of an abort; the worker is gone then. */
export async function carryOut(worker: RolloutWorker, limited: LimitedOrder): Promise<OrderEnd> {
  const { part, order, signal, limitMs, overrun } = limited;
  const running = worker.carryOut(order);
  try {
    return endOf(await raceSignal(running, signal), limited);
  } catch (error) {
    if (!signal.aborted && error instanceof WorkerEnded)
      return { failure: workerLost(part, error), isIdle: false };
    if (!signal.aborted) throw error;
  }
  worker.cancel(messageOf(signal.reason));
  const report = await lastWords(running);
  await worker.terminate();
  if (!(signal.reason instanceof Overrun)) throw signal.reason;
  // Done in time, and only the news of it was late.
  const isInTime = report !== null && !report.wasCancelled && report.elapsedMs <= limitMs;
  return isInTime
    ? { ...endOf(report, limited), isIdle: false }
    : { failure: overrun(), isIdle: false };
}

async function lastWords(running: Promise<ThreadReport>): Promise<ThreadReport | null> {
  using limit = new LinkedAbort([], { ms: graceMs, reason: () => new Error('not heeded') });
  return await raceSignal(running, limit.signal).catch(() => null);
}

function endOf(
  { elapsedMs, failure, sample, isIdle }: ThreadReport,
  { part, limitMs, overrun }: LimitedOrder,
): OrderEnd {
  // A worker that was busy beyond its limit answers before the server's own timer is heard.
  if (elapsedMs > limitMs) return { failure: overrun(), isIdle: false };
  if (failure !== null) return { failure: thrown(part, failure), isIdle };
  return { sample, isIdle };
}
