import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { Delivery, RolloutStore } from '../store/rollout-store.ts';
import type { UrlPolicy } from '../wire/url-policy.ts';
import type { CallbackDelivery, DeliveryActivity, DeliveryEnd } from './callback-delivery.ts';

export interface CallbackSenderParts {
  readonly store: Pick<RolloutStore, 'deliveries' | 'delivered' | 'attempted' | 'dead'>;
  readonly policy: UrlPolicy;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface CallbackSenderOptions {
  /** After this long without success a delivery is a dead letter. */
  readonly maxAgeMs?: number;
}

export class CallbackSender implements CallbackDelivery {
  constructor(parts: CallbackSenderParts, options: CallbackSenderOptions = {}) {
    void parts;
    void options;
  }

  enqueue(deliveries: readonly Delivery[]): void {
    void deliveries;
    throw new Error('not yet');
  }

  settled(rolloutId: string): Promise<void> {
    return Promise.reject(new Error(rolloutId));
  }

  withdraw(rolloutId: string): Promise<void> {
    return Promise.reject(new Error(rolloutId));
  }

  activity(rolloutId: string): DeliveryActivity | null {
    void rolloutId;
    return null;
  }

  onEnd(listener: (end: DeliveryEnd) => void): () => void {
    void listener;
    return () => undefined;
  }

  close(signal: AbortSignal): Promise<void> {
    void signal;
    return Promise.resolve();
  }
}
