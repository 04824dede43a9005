/**
 * How many rollouts may run, following the engine's KV cache: a full cache makes the engine throw out work that is half done, so fewer run until it is
 * emptier. A cut takes a quarter off and is followed by the next one only when it has taken effect; growing back goes in steps of a tenth.
 */
import type { Clock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import type { Logger } from '../core/logger.ts';
import type { EngineLoad } from '../engines/engine.ts';

const keptByCut = 0.75;
const step = 0.1;

/** An engine that does not answer is as unknown as one that does not say. */
const loadTimeoutMs = 5_000;

export interface KvCapOptions {
  readonly max: number;
  readonly high: number;
  readonly low: number;
  readonly pollMs: number;
}

export interface KvCapParts {
  readonly load: (signal: AbortSignal) => Promise<EngineLoad>;
  /** Rollouts that run now. */
  readonly running: () => number;
  /** Called when more may run. */
  readonly onGrown: () => void;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class KvCap {
  readonly #options: KvCapOptions;
  readonly #parts: KvCapParts;
  #value: number;
  #isBlind = false;

  constructor(options: KvCapOptions, parts: KvCapParts) {
    this.#options = options;
    this.#parts = parts;
    this.#value = options.max;
  }

  get value(): number {
    return this.#value;
  }

  /** One look at the engine; null = it does not say. */
  observe(kvUse: number | null): void {
    const { max, high, low } = this.#options;
    const running = this.#parts.running();
    const before = this.#value;
    if (kvUse === null) return;
    if (kvUse >= high) {
      // More than the cap still run: an earlier cut has not taken effect.
      if (running <= before)
        this.#value = Math.max(1, Math.floor(Math.min(before, Math.max(running, 1)) * keptByCut));
    } else if (kvUse < low)
      this.#value = Math.min(max, before + Math.max(1, Math.ceil(max * step)));
    if (this.#value === before) return;
    this.#parts.logger.log('info', 'the engine changes how many rollouts may run', {
      kvUse,
      runningCap: this.#value,
    });
    if (this.#value > before) this.#parts.onGrown();
  }

  /** Looks until `signal` fires. Never rejects. */
  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#look(signal);
      await this.#parts.clock.sleep(this.#options.pollMs, signal).catch(() => undefined);
    }
  }

  async #look(signal: AbortSignal): Promise<void> {
    const { load, logger } = this.#parts;
    using limit = new LinkedAbort([signal], {
      ms: loadTimeoutMs,
      reason: () => new Error('the engine did not say in time'),
    });
    try {
      this.observe((await load(limit.signal)).kvUse);
      this.#isBlind = false;
    } catch (error) {
      if (signal.aborted || this.#isBlind) return;
      this.#isBlind = true;
      logger.log('warn', 'the load of the engine is unknown: the running cap stays', {
        error: messageOf(error),
      });
    }
  }
}
