/** A host as the front end knows it: its last sign of life, and questions that wait for its answer. */
import type { ErrorFault } from '../../core/error-fault.ts';
import { errorOf } from '../../core/error-fault.ts';
import { RolloutError } from '../../core/errors.ts';
import { LinkedAbort, never } from '../../core/linked-abort.ts';
import type { FromHost, HostAnswer, HostBeat, HostCall, ToHost } from './fleet-messages.ts';

const secondMs = 1_000;
const minuteMs = 60 * secondMs;

/** How long a host may take for an answer: what sends files, or ends programs, takes its time. */
const longestMs: Readonly<Record<HostCall['name'], number>> = {
  register: 30 * secondMs,
  revoke: 5 * secondMs,
  'end calls': 5 * secondMs,
  activity: secondMs,
  probe: 5 * secondMs,
  'probe upstream': 5 * secondMs,
  captured: 10 * minuteMs,
  abort: 2 * minuteMs,
  release: 2 * minuteMs,
};

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

  /** WORKER_LOST when it is gone, or lives and does not answer for as long as the call may take; the reason of `asker` when that fires first. */
  async ask(lease: string, call: HostCall, asker: AbortSignal = never): Promise<HostAnswer> {
    asker.throwIfAborted();
    if (this.#lost !== null) throw this.#lost;
    const reason = (): RolloutError =>
      new RolloutError('WORKER_LOST', `the host ${this.beat.name} does not answer`, {
        phase: 'server',
      });
    using limit = new LinkedAbort([asker], { ms: longestMs[call.name], reason });
    const { signal } = limit;
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

  /** As `ask`, for what may be missing: null when there is no answer. */
  async askIfThere(lease: string, call: HostCall): Promise<HostAnswer> {
    return await this.ask(lease, call).catch(() => null);
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
