/**
 * The one place that changes the state of a rollout: asserts the transition, writes it with everything that belongs to it in one transaction, then tells
 * the observers. A store that cannot write is waited for: what was accepted is not lost because a disk is full.
 */
import type { CallbackDelivery } from '../callbacks/callback-delivery.ts';
import type { Clock } from '../core/clock.ts';
import { isRolloutError, messageOf } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { Delivery, RolloutChange, RolloutStore } from '../store/rollout-store.ts';
import type { CancelReceipt } from '../wire/rollout/receipt.ts';
import type { RolloutOutcome } from '../wire/rollout/rollout-outcome.ts';
import { isTerminal, type RolloutState } from '../wire/rollout/rollout-state.ts';
import type { MadeDelivery } from './deliveries.ts';
import type { LiveRollout } from './live-rollout.ts';
import { transition, type Mover } from './rollout-state.ts';
import type { RolloutNews, RolloutObserver } from './scheduler-parts.ts';

const firstRetryMs = 250;
const longestRetryMs = 5_000;

export interface Step {
  readonly to: RolloutState;
  readonly by: Mover;
  readonly set?: Omit<RolloutChange['set'], 'state' | 'outcome' | 'endedAt'>;
  readonly outcome?: RolloutOutcome;
  /** With `outcome`, for the observers. */
  readonly diagnostics?: Readonly<Record<string, unknown>> | null;
  /** With `outcome`, for the observers too. */
  readonly figures?: Pick<Extract<RolloutNews, { type: 'ended' }>, 'metrics' | 'agentMetadata'>;
  readonly deliveries?: readonly MadeDelivery[];
  readonly withdraw?: boolean;
  readonly receipt?: CancelReceipt;
}

export interface LedgerParts {
  readonly store: RolloutStore;
  readonly callbacks: CallbackDelivery;
  readonly observers: readonly RolloutObserver[];
  readonly clock: Clock;
  readonly logger: Logger;
  /** Ends the waiting for a store that cannot write. */
  readonly giveUp: AbortSignal;
}

export class Ledger {
  readonly #parts: LedgerParts;

  constructor(parts: LedgerParts) {
    this.#parts = parts;
  }

  /**
   * Durable, with its callbacks on their way, when it resolves. `next` is asked when the changes before it are written; null = there is nothing to do.
   * False = nothing was changed.
   */
  async advance(rollout: LiveRollout, next: () => Step | null): Promise<boolean> {
    return await rollout.inTurn(async () => {
      const step = next();
      if (step === null) return false;
      const { to, by, set, outcome, deliveries, withdraw, receipt } = step;
      const { from, event } = transition(rollout.state, to, by);
      const at = this.#parts.clock.now();
      const { id, tenant } = rollout;
      const change: RolloutChange = {
        id,
        from: from === null ? [] : [from],
        set: {
          ...set,
          state: to,
          ...(isTerminal(to) && { endedAt: at }),
          ...(outcome !== undefined && { outcome }),
        },
        ...(deliveries !== undefined && {
          deliveries: deliveries.map(({ delivery }) => delivery),
        }),
        ...(withdraw !== undefined && { withdraw }),
        ...(receipt !== undefined && { receipt }),
        // What is lost of it waits again; nothing of an agent has happened before `agentBegins`.
        ...(to === 'running' && { isRepeatable: true }),
        events:
          event === null
            ? []
            : [{ rolloutId: id, tenant, type: event, at, payload: payloadOf(to, by, outcome) }],
      };
      const known = await this.patiently(rollout, () => this.#change(change));
      if (known === null) throw new TypeError(`the store does not hold ${id} as ${from ?? 'new'}`);
      rollout.state = to;
      if (outcome !== undefined) rollout.outcome = outcome;
      if (set?.attempt !== undefined) rollout.attempt = set.attempt;
      if (set?.completedAt !== undefined) rollout.hasCompleted = true;
      for (const { delivery, losses } of deliveries ?? [])
        if (losses.length > 0)
          this.#parts.logger.log('warn', 'a callback leaves out what JSON cannot carry', {
            ...{ rolloutId: id, channel: delivery.channel, losses },
          });
      this.tell(rollout, newsOf(step, rollout.attempt));
      this.#sendOut(rollout, known);
      return true;
    });
  }

  /** Durable when it resolves. Does nothing for one that is being ended: then it rejects. */
  async agentBegins(rollout: LiveRollout): Promise<void> {
    await rollout.inTurn(async () => {
      if (rollout.endedBy !== null)
        throw new TypeError(`the rollout is ended by ${rollout.endedBy}`);
      const isDone = await this.patiently(rollout, () =>
        this.#parts.store.change({
          id: rollout.id,
          from: ['running'],
          set: { hasAgentBegun: true },
        }),
      );
      if (!isDone) throw new TypeError('the rollout does not run');
      rollout.hasAgentBegun = true;
    });
  }

  /** Tries again until the store can; rejects when waiting is given up, and with what no waiting mends. */
  async patiently<T>(rollout: LiveRollout, work: () => Promise<T>): Promise<T> {
    const { clock, logger, giveUp } = this.#parts;
    for (let ms = firstRetryMs; ; ms = Math.min(2 * ms, longestRetryMs)) {
      try {
        const value = await work();
        rollout.diskSince = null;
        return value;
      } catch (error) {
        giveUp.throwIfAborted();
        // A defect, or a store that is gone, is the same at every try.
        if (!isRolloutError(error) || !error.retryable) throw error;
        if (rollout.diskSince === null)
          logger.log('error', 'the store cannot take a change: it is tried until it can', {
            rolloutId: rollout.id,
            error: messageOf(error),
          });
        rollout.diskSince ??= clock.now();
        await clock.sleep(ms, giveUp);
      }
    }
  }

  tell({ id, tenant }: { readonly id: string; readonly tenant: string }, news: RolloutNews): void {
    for (const observer of this.#parts.observers)
      try {
        observer.rollout({ id, tenant }, news);
      } catch (error) {
        this.#parts.logger.log('warn', 'an observer failed', { error: messageOf(error) });
      }
  }

  /**
   * The deliveries of the rollout where the change has any; null = it was refused. They are asked for with the change: the store answers in order, both in
   * one message. An attempt whose answer was lost may have been applied.
   */
  async #change(change: RolloutChange): Promise<readonly Delivery[] | null> {
    const { store } = this.#parts;
    const hasDeliveries = change.deliveries !== undefined && change.deliveries.length > 0;
    const [isDone, known] = await Promise.all([
      store.change(change),
      hasDeliveries ? store.deliveries(change.id) : [],
    ]);
    if (isDone || (await store.rollout(change.id))?.state === change.set.state) return known;
    return null;
  }

  #sendOut(rollout: LiveRollout, known: readonly Delivery[]): void {
    const isNew = (seq: number): boolean => seq > rollout.lastSeq;
    const deliveries = known.filter(({ state, seq }) => state === 'pending' && isNew(seq));
    rollout.lastSeq = Math.max(rollout.lastSeq, ...known.map(({ seq }) => seq));
    // Cancelled while this was being written: the cancellation withdraws it next.
    if (rollout.endedBy === 'controller' || deliveries.length === 0) return;
    this.#parts.callbacks.enqueue(deliveries);
  }
}

function payloadOf(
  to: RolloutState,
  by: Mover,
  outcome: RolloutOutcome | undefined,
): Readonly<Record<string, unknown>> {
  if (outcome === undefined) return { by };
  const { stage, cause, reward, trainable, retryable } = outcome;
  return { by, state: to, stage, cause, reward, trainable, retryable };
}

function newsOf({ to, outcome, ...step }: Step, attempt: number): RolloutNews {
  if (outcome !== undefined)
    return { type: 'ended', outcome, diagnostics: step.diagnostics ?? null, ...step.figures };
  if (to === 'running') return { type: 'started', attempt };
  return to === 'grading' ? { type: 'completed' } : { type: 'requeued', attempt };
}
