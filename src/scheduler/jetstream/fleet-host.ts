/** A host as the front end knows it: its last sign of life, and questions that wait for its answer. */
import type { ErrorFault } from '../../core/error-fault.ts';
import { errorOf } from '../../core/error-fault.ts';
import { RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { FromHost, HostAnswer, HostBeat, HostCall, ToHost } from './fleet-messages.ts';

export interface HostChannel {
  send(message: ToHost): void;
  flushed(ms: number): Promise<void>;
  close(): void;
}

export class FleetHost {
  readonly id: string;
  readonly #channel: HostChannel;
  readonly #asked = new Map<number, PromiseWithResolvers<HostAnswer>>();
  #lastNumber = 0;
  #lost: RolloutError | null = null;
  beat: HostBeat;
  seenMs: number;

  constructor(
    beat: HostBeat,
    seenMs: number,
    open: (hear: (message: FromHost) => void) => HostChannel,
    hear: (message: FromHost, host: FleetHost) => void,
  ) {
    this.id = beat.host;
    this.beat = beat;
    this.seenMs = seenMs;
    this.#channel = open((message) => {
      if (message.kind === 'answer') this.#asked.get(message.number)?.resolve(message.value);
      else if (message.kind === 'refusal') this.#refuse(message.number, message.fault);
      else hear(message, this);
    });
  }

  get isLost(): boolean {
    return this.#lost !== null;
  }

  tell(message: ToHost): void {
    if (this.#lost === null) this.#channel.send(message);
  }

  /** WORKER_LOST when it is gone; the reason of `signal` when that fires first. */
  async ask(lease: string, call: HostCall, signal: AbortSignal): Promise<HostAnswer> {
    signal.throwIfAborted();
    if (this.#lost !== null) throw this.#lost;
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    const waiting = Promise.withResolvers<HostAnswer>();
    this.#asked.set(number, waiting);
    const giveUp = (): void => waiting.reject(signal.reason as Error);
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      this.#channel.send({ kind: 'ask', number, lease, call });
      return await waiting.promise;
    } finally {
      signal.removeEventListener('abort', giveUp);
      this.#asked.delete(number);
    }
  }

  /** As `ask`, for what may be missing: null when there is no answer in time. */
  async askSoon(lease: string, call: HostCall, ms: number): Promise<HostAnswer> {
    using limit = new LinkedAbort([], { ms, reason: () => new Error('no answer in time') });
    return await this.ask(lease, call, limit.signal).catch(() => null);
  }

  lose(why: string): void {
    this.#lost ??= new RolloutError('WORKER_LOST', `the host ${this.beat.name} is gone: ${why}`, {
      phase: 'server',
    });
    this.#channel.close();
    for (const { reject } of this.#asked.values()) reject(this.#lost);
  }

  get loss(): RolloutError | null {
    return this.#lost;
  }

  async flushed(ms: number): Promise<void> {
    await this.#channel.flushed(ms);
  }

  #refuse(number: number, fault: ErrorFault): void {
    this.#asked.get(number)?.reject(errorOf(fault));
  }
}
