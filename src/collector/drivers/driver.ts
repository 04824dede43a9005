/** The way of collecting: one per file beside this one, all on the same pool and the same abort. */
import type { AbortReason, AbortReceipt } from '../abort/abort-receipt.ts';
import type { Batch } from '../batch.ts';

export interface CollectorDriver {
  /**
   * The next batch, as soon as it is full; null = the dataset has ended and nothing is left. One call at a time. Rejects when too many groups in a row
   * came to nothing (COLLECTION_STALLED), and with the reason of `signal`; both end what runs.
   */
  collect(signal: AbortSignal): Promise<Batch | null>;
  /** Ends what runs, by the shared abort, and answers its receipt; null = nothing ran. Idempotent. */
  stop(reason: AbortReason): Promise<AbortReceipt | null>;
}
