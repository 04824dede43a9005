/**
 * One step ahead: while a trainer works on a batch, the next one is collected as by the synchronous driver, with its oversampling and its abort. The weights change
 * between two batches only: the trainer awaits `settled`, changes them, and collects. What it gets then was sampled by the weights before.
 */
import { LinkedAbort } from '../../core/linked-abort.ts';
import { raceSignal } from '../../core/race-signal.ts';
import type { AbortReason, AbortReceipt } from '../abort/abort-receipt.ts';
import type { Batch } from '../batch.ts';
import type { CollectorParts } from '../collector-parts.ts';
import type { CollectorDriver } from './driver.ts';
import { SynchronousDriver, type GatheredBatch } from './synchronous-driver.ts';

export class OneStepAheadDriver implements CollectorDriver {
  readonly #inner: SynchronousDriver;
  #life = new LinkedAbort([]);
  #ahead: Promise<GatheredBatch | null> | null = null;

  constructor(parts: CollectorParts, runName: string) {
    this.#inner = new SynchronousDriver(parts, runName);
  }

  async collect(signal: AbortSignal): Promise<Batch | null> {
    signal.throwIfAborted();
    const ahead = this.#ahead ?? this.#begin();
    const gathered = await raceSignal(ahead, signal).catch(async (error: unknown) => {
      await this.stop(signal.aborted ? 'stopped' : 'failed');
      throw error;
    });
    if (gathered === null) {
      this.#ahead = null;
      return null;
    }
    const batch = this.#inner.handOver(gathered);
    void this.#begin();
    return batch;
  }

  /** Resolves when the next batch is full and the rest of it is gone: nothing runs then, until `collect`. Never rejects. */
  async settled(): Promise<void> {
    const gathered = await this.#ahead?.catch(() => null);
    await gathered?.quiet;
  }

  /** A batch that is full stays for the next `collect`. */
  async stop(reason: AbortReason): Promise<AbortReceipt | null> {
    this.#life.abort(new Error(`collecting ends: ${reason}`));
    const ended = await this.#inner.stop(reason);
    const gathered = await this.#ahead?.catch(() => null);
    if (gathered == null) this.#ahead = null;
    return ended;
  }

  #begin(): Promise<GatheredBatch | null> {
    if (this.#life.signal.aborted) this.#life = new LinkedAbort([]);
    const ahead = this.#inner.gather(this.#life.signal);
    ahead.catch(() => undefined); // whoever collects next hears of it
    this.#ahead = ahead;
    return ahead;
  }
}
