/**
 * The sender's port, as the scheduler sees it: deliveries that the store holds as pending go out, in order, until the receiver took them or they are
 * dead letters. Bytes and keys come from the store and never change.
 */
import type { Delivery, PendingDelivery } from '../store/rollout-store.ts';

export interface DeliveryEnd {
  readonly delivery: Omit<Delivery, 'body'>;
  /** `delivered`; `dead`: no more attempts until somebody replays it; `withdrawn`: its rollout was cancelled before it went out. */
  readonly result: 'delivered' | 'dead' | 'withdrawn';
}

/** What is under way for one rollout, for displays. */
export interface DeliveryActivity {
  readonly channel: Delivery['channel'];
  /** Scheme, host and port only. */
  readonly receiver: string;
  readonly attempts: number;
  readonly lastError: string | null;
  readonly since: Date;
  readonly nextAttemptAt: Date | null;
}

export interface CallbackDelivery {
  /** Takes over pending deliveries that the store has committed. Returns at once. */
  enqueue(deliveries: readonly PendingDelivery[]): void;
  /**
   * Resolves when the deliveries of the rollout have ended, or when the first round of attempts of one is over without success (the sender goes on by
   * itself, with longer pauses): the rollout's reservation is held no longer than that. Never rejects.
   */
  settled(rolloutId: string): Promise<void>;
  /** Forgets deliveries of the rollout that have not been sent; one that is on the wire is cut off. Resolves when none is under way. */
  withdraw(rolloutId: string): Promise<void>;
  activity(rolloutId: string): DeliveryActivity | null;
  onEnd(listener: (end: DeliveryEnd) => void): () => void;
  /** Stops: takes nothing more, sends nothing again, and lets first attempts go out until `signal` fires. What was not delivered stays pending. Idempotent. */
  close(signal: AbortSignal): Promise<void>;
}
