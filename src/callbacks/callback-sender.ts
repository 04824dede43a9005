/**
 * Brings what the store holds as pending to its receivers. Every delivery lives through: waiting for its turn, waiting for a place, one attempt, a pause,
 * and again, until the receiver took it, refused it for good, or it is too old. What a pause or a shutdown interrupts is still pending in the store.
 */
import { lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import type { Clock } from '../core/clock.ts';
import { attribute, messageOf } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { PendingDelivery, RolloutStore } from '../store/rollout-store.ts';
import { readAcknowledgement } from '../wire/rollout/acknowledgement.ts';
import type { UrlPolicy } from '../wire/url-policy.ts';
import type { CallbackDelivery, DeliveryActivity, DeliveryEnd } from './callback-delivery.ts';
import { CallbackHttp, type AttemptResult } from './callback-http.ts';
import { entryOf, type Entry } from './delivery-entry.ts';
import { DeliveryOrder } from './delivery-order.ts';
import { raceSignal } from '../core/race-signal.ts';
import { ReceiverSlots } from './receiver-slots.ts';
import { firstRoundAttempts, pauseMs } from './retry-schedule.ts';

export interface CallbackSenderParts {
  readonly store: Pick<RolloutStore, 'deliveries' | 'delivered' | 'attempted' | 'dead'>;
  readonly policy: UrlPolicy;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface CallbackSenderOptions {
  /** A delivery that is older when a first round of attempts is over is a dead letter. */
  readonly maxAgeMs?: number;
  readonly attemptMs?: number;
  readonly perReceiver?: number;
  readonly overall?: number;
  readonly userAgent?: string;
  /** From 0 to 1, for the pauses. */
  readonly random?: () => number;
  /** Resolves the names of receivers. */
  readonly lookup?: LookupFunction;
}

const defaults = {
  maxAgeMs: 24 * 60 * 60_000,
  attemptMs: 10_000,
  perReceiver: 32,
  overall: 256,
  userAgent: 'slipway',
  random: Math.random,
  lookup,
};
/** A rollout's place is held no longer than a first round of silence takes, whatever its callbacks wait for. */
const settleMs = 60_000;
const storeRetryMs = 1_000;

export class CallbackSender implements CallbackDelivery {
  readonly #parts: CallbackSenderParts;
  readonly #options: Required<CallbackSenderOptions>;
  readonly #http: CallbackHttp;
  readonly #slots: ReceiverSlots;
  readonly #order = new DeliveryOrder<Entry>();
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = new Set<(end: DeliveryEnd) => void>();
  #isClosing = false;
  #closed: Promise<void> | null = null;

  constructor(parts: CallbackSenderParts, options: CallbackSenderOptions = {}) {
    this.#parts = parts;
    this.#options = { ...defaults, ...options };
    const { perReceiver, overall } = this.#options;
    this.#http = new CallbackHttp({ ...parts, ...this.#options });
    this.#slots = new ReceiverSlots({ perReceiver, overall });
  }

  enqueue(deliveries: readonly PendingDelivery[]): void {
    if (this.#isClosing) return;
    for (const delivery of deliveries) {
      const known = this.#entries.get(delivery.key);
      if (known !== undefined) {
        // Replayed in the moment in which it became a dead letter.
        if (known.isEnding) void known.done.promise.then(() => this.enqueue([delivery]));
        continue;
      }
      const entry = entryOf(delivery, this.#parts.clock.now());
      this.#entries.set(delivery.key, entry);
      this.#order.add(entry);
      void this.#deliver(entry);
    }
  }

  async settled(rolloutId: string): Promise<void> {
    const entries = this.#order.ofRollout(rolloutId);
    if (entries.length === 0) return;
    const over = new AbortController();
    const timer = this.#parts.clock.sleep(settleMs, over.signal).catch(() => undefined);
    const allDone = Promise.all(entries.map(({ done }) => done.promise));
    await Promise.race([allDone, timer, ...entries.map((entry) => this.#order.stalled(entry))]);
    over.abort(new Error('settled'));
  }

  async withdraw(rolloutId: string): Promise<void> {
    const entries = this.#order.ofRollout(rolloutId);
    const reason = new Error('the rollout was cancelled');
    for (const entry of entries) {
      entry.isWithdrawn = true;
      entry.stop.abort(reason);
      entry.cut.abort(reason);
    }
    await Promise.all(entries.map(({ done }) => done.promise));
  }

  activity(rolloutId: string): DeliveryActivity | null {
    const entries = this.#order.ofRollout(rolloutId);
    const entry = entries.find(({ isOnWire }) => isOnWire) ?? entries[0];
    if (entry === undefined) return null;
    const { receiver, attempts, lastError, since, nextAttemptAt } = entry;
    return { channel: entry.delivery.channel, receiver, attempts, lastError, since, nextAttemptAt };
  }

  onEnd(listener: (end: DeliveryEnd) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async close(signal: AbortSignal): Promise<void> {
    const cut = (): void => {
      for (const { stop, cut } of this.#entries.values()) {
        stop.abort(signal.reason);
        cut.abort(signal.reason);
      }
    };
    this.#closed ??= this.#close();
    if (signal.aborted) cut();
    else signal.addEventListener('abort', cut, { once: true });
    try {
      await this.#closed;
    } finally {
      signal.removeEventListener('abort', cut);
    }
  }

  async #close(): Promise<void> {
    this.#isClosing = true;
    // First attempts still go out: the last words of a server that stops.
    const urls = new Set<string>();
    for (const entry of this.#entries.values())
      if (entry.failed > 0 && !entry.isOnWire) this.#leave(entry, urls);
    await Promise.all([...this.#entries.values()].map(({ done }) => done.promise));
    await this.#http.close();
  }

  /** Stays pending in the store, with everything that would have to go out after it. `urls` that were looked through are not looked through again. */
  #leave(entry: Entry, urls: Set<string>): void {
    if (entry.stop.signal.aborted) return;
    entry.stop.abort(new Error('the sender stops'));
    const beside = urls.has(entry.url) ? [] : this.#order.waitingAt(entry.url);
    urls.add(entry.url);
    for (const next of [...beside, ...this.#order.waitingOf(entry.rolloutId)])
      this.#leave(next, urls);
  }

  /** The life of one delivery. Never rejects. */
  async #deliver(entry: Entry): Promise<void> {
    const { signal } = entry.stop;
    try {
      await raceSignal(this.#order.turn(entry), signal);
      for (;;) {
        const result = await this.#slots.run(entry.receiver, signal, () => this.#attempt(entry));
        if (result.kind === 'taken') {
          await this.#taken(entry, result.text);
          return;
        }
        if (await this.#failed(entry, result)) return;
        await this.#pause(entry, result.retryAfterMs);
      }
    } catch (error) {
      if (entry.isWithdrawn) this.#tell(entry, 'withdrawn');
      else if (!signal.aborted) this.#complain(entry, 'stopped by a defect', error);
    } finally {
      this.#entries.delete(entry.delivery.key);
      this.#order.remove(entry);
      entry.done.resolve(undefined);
    }
  }

  async #attempt(entry: Entry): Promise<AttemptResult> {
    const { signal } = entry.cut;
    entry.isOnWire = true;
    entry.nextAttemptAt = null;
    try {
      const body = entry.body ?? (await this.#bodyOf(entry.delivery));
      const result = await this.#http.attempt({ ...entry.delivery, body }, signal);
      entry.attempts += 1;
      return result;
    } catch (error) {
      signal.throwIfAborted();
      const attributed = attribute(error, 'CALLBACK_FAILED', 'callback', 'not sent');
      return { ...noAnswer, error: attributed };
    } finally {
      entry.isOnWire = false;
    }
  }

  async #bodyOf({ rolloutId, key }: DeliveryEnd['delivery']): Promise<string> {
    const ofRollout = await this.#parts.store.deliveries(rolloutId);
    const found = ofRollout.find((each) => each.key === key);
    if (found === undefined) throw new Error('the store no longer has it');
    return found.body;
  }

  async #taken(entry: Entry, text: string | null): Promise<void> {
    const ack = text === null ? null : readAcknowledgement(text);
    const warning = text === null ? 'it is too long or breaks off' : (ack?.warning ?? null);
    if (warning !== null) this.#complain(entry, 'an acknowledgement is not read', warning);
    const report = ack?.report ?? null;
    const controllerReport = report === null ? null : JSON.stringify(report);
    const { attempts } = entry;
    await this.#recorded(entry, () =>
      this.#parts.store.delivered(entry.delivery.key, { attempts, controllerReport }),
    );
    this.#tell(entry, 'delivered');
  }

  /** Answers whether that was the last attempt. */
  async #failed(
    entry: Entry,
    { error, isFinal, isDown }: Extract<AttemptResult, { kind: 'failed' }>,
  ): Promise<boolean> {
    const { store, clock } = this.#parts;
    entry.failed += 1;
    entry.lastError = error.message;
    entry.cut.signal.throwIfAborted();
    const { attempts } = entry;
    const { key, createdAt } = entry.delivery;
    const isRoundOver = entry.failed >= firstRoundAttempts;
    const ageMs = clock.now().getTime() - createdAt.getTime();
    this.#complain(entry, 'a callback was not taken', error);
    if (isFinal || (isRoundOver && ageMs > this.#options.maxAgeMs)) {
      await this.#recorded(entry, () => store.dead(key, { attempts, error: error.message }));
      this.#tell(entry, 'dead');
      return true;
    }
    await store.attempted(key, { attempts, error: error.message }).catch((problem: unknown) => {
      this.#complain(entry, 'a failed attempt is not recorded', problem);
    });
    if (isRoundOver) {
      this.#order.stall(entry, { stepsAside: !isDown });
      entry.body = null;
    }
    return false;
  }

  async #pause(entry: Entry, retryAfterMs: number | null): Promise<void> {
    const { clock } = this.#parts;
    const ms = pauseMs({ failed: entry.failed, retryAfterMs, random: this.#options.random() });
    entry.nextAttemptAt = new Date(clock.now().getTime() + ms);
    if (this.#isClosing) this.#leave(entry, new Set());
    await clock.sleep(ms, entry.stop.signal);
  }

  /** What became of a delivery is written until it is: a full disk may find space. Given up at a shutdown; then it goes out again, with the same bytes. */
  async #recorded(entry: Entry, write: () => Promise<void>): Promise<void> {
    entry.isEnding = true;
    for (;;) {
      try {
        await write();
        return;
      } catch (error) {
        this.#complain(entry, 'the end of a delivery is not recorded', error);
        await this.#parts.clock.sleep(storeRetryMs, entry.stop.signal);
      }
    }
  }

  #tell(entry: Entry, result: DeliveryEnd['result']): void {
    const { attempts, lastError } = entry;
    const end: DeliveryEnd = { delivery: { ...entry.delivery, attempts, lastError }, result };
    for (const listener of this.#listeners) {
      try {
        listener(end);
      } catch (error) {
        this.#complain(entry, 'a listener failed', error);
      }
    }
  }

  #complain(entry: Entry, message: string, problem: unknown): void {
    const { rolloutId, receiver, attempts, delivery } = entry;
    const fields = {
      rolloutId,
      channel: delivery.channel,
      receiver,
      attempts,
      problem: messageOf(problem),
    };
    this.#parts.logger.log('warn', message, fields);
  }
}

const noAnswer = { kind: 'failed', isFinal: false, retryAfterMs: null, isDown: false } as const;
