import type { PendingDelivery } from '../store/rollout-store.ts';
import { urlParts } from '../wire/url-policy.ts';
import type { DeliveryEnd } from './callback-delivery.ts';

/** A delivery under way. */
export interface Entry {
  readonly seq: number;
  readonly url: string;
  readonly rolloutId: string;
  readonly receiver: string;
  readonly since: Date;
  readonly delivery: DeliveryEnd['delivery'];
  /** null = it is long, or a long pause runs: many may wait for a receiver that is gone, and the store has it. */
  body: string | null;
  /** In all, as the store counts them. */
  attempts: number;
  /** Since it was taken over. */
  failed: number;
  lastError: string | null;
  nextAttemptAt: Date | null;
  isOnWire: boolean;
  isEnding: boolean;
  /** Ends its waiting. One for each: what thousands listen to is slow to listen to. */
  readonly stop: AbortController;
  /** Ends its attempt on the wire. */
  readonly cut: AbortController;
  isWithdrawn: boolean;
  readonly done: PromiseWithResolvers<undefined>;
}

/** Characters. */
const longestKept = 16_384;

export function entryOf({ body: given, ...delivery }: PendingDelivery, since: Date): Entry {
  const body = given === null || given.length > longestKept ? null : given;
  const { seq, url, rolloutId, attempts, lastError } = delivery;
  return {
    ...{ seq, url, rolloutId, attempts, lastError, since, body },
    delivery,
    receiver: urlParts(url)?.origin ?? 'no address',
    failed: 0,
    nextAttemptAt: null,
    isOnWire: false,
    isEnding: false,
    stop: new AbortController(),
    cut: new AbortController(),
    isWithdrawn: false,
    done: Promise.withResolvers<undefined>(),
  };
}
