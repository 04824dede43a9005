/**
 * Who executes a rollout, in a bucket that every host sees: a host makes the claim before it starts anything, and marks it as begun before the agent does. A claim that
 * is not begun and whose host is gone can be taken over; one that has begun cannot. Every change names the revision that it knows.
 */
import type { KV } from '@nats-io/kv';
import { setTimeout as delay } from 'node:timers/promises';
import { RolloutError } from '../../core/errors.ts';
import { LinkedAbort, never } from '../../core/linked-abort.ts';

export interface Claim {
  readonly rolloutId: string;
  /** The life of the front end that gave it out, and the lease. */
  readonly epoch: string;
  readonly lease: string;
  /** The life of the host. */
  readonly host: string;
  readonly hasBegun: boolean;
}

export interface HeldClaim {
  readonly claim: Claim;
  readonly revision: number;
}

export type ClaimAnswer =
  | { readonly kind: 'ours'; readonly held: HeldClaim }
  /** Another host has it, or had and its agent has begun. */
  | { readonly kind: 'taken'; readonly by: Claim };

const retryMs = 50;
const limitMs = 10_000;
const frontKey = 'front';
const encoder = new TextEncoder();

export interface ClaimBook {
  claim(claim: Claim, isGone: (other: Claim) => boolean, signal: AbortSignal): Promise<ClaimAnswer>;
  /** null = it is not ours any more: the agent must not begin. */
  begin(held: HeldClaim, signal: AbortSignal): Promise<HeldClaim | null>;
  /** Nobody executes it under this lease. One of another lease stays. Idempotent. */
  forget(rolloutId: string, lease: string): Promise<void>;
}

/** What a change of a claim may take: a bucket that takes none in this time takes none soon. QUEUE_UNAVAILABLE. */
export function claimLimit(signal: AbortSignal, ms = limitMs): LinkedAbort {
  const reason = (): RolloutError =>
    new RolloutError('QUEUE_UNAVAILABLE', 'the queue takes no claim of the rollout', {
      phase: 'server',
      remedy:
        'Look at the NATS servers: whether they have a quorum, space, and rights for this user.',
    });
  return new LinkedAbort([signal], { ms, reason });
}

export class Claims implements ClaimBook {
  readonly #bucket: KV;

  constructor(bucket: KV) {
    this.#bucket = bucket;
  }

  async claim(
    claim: Claim,
    isGone: (other: Claim) => boolean,
    signal: AbortSignal,
  ): Promise<ClaimAnswer> {
    const key = keyOf(claim.rolloutId);
    for (;;) {
      signal.throwIfAborted();
      try {
        return {
          kind: 'ours',
          held: { claim, revision: await this.#bucket.create(key, encode(claim)) },
        };
      } catch {
        // Either it is there, or the answer was lost: what the bucket says now decides.
      }
      const found = await this.#read(key, signal);
      if (found === null) {
        await delay(retryMs, undefined, { signal });
        continue;
      }
      const { claim: other } = found;
      if (other.lease === claim.lease && other.host === claim.host)
        return { kind: 'ours', held: found };
      if (other.hasBegun || !isGone(other)) return { kind: 'taken', by: other };
      try {
        const revision = await this.#bucket.update(key, encode(claim), found.revision);
        return { kind: 'ours', held: { claim, revision } };
      } catch {
        await delay(retryMs, undefined, { signal });
      }
    }
  }

  async begin({ claim, revision }: HeldClaim, signal: AbortSignal): Promise<HeldClaim | null> {
    const key = keyOf(claim.rolloutId);
    const begun: Claim = { ...claim, hasBegun: true };
    for (;;) {
      signal.throwIfAborted();
      try {
        return { claim: begun, revision: await this.#bucket.update(key, encode(begun), revision) };
      } catch {
        const found = await this.#read(key, signal);
        if (found?.claim.lease !== claim.lease || found.claim.host !== claim.host) return null;
        if (found.claim.hasBegun) return found;
        if (found.revision !== revision) return null;
        await delay(retryMs, undefined, { signal });
      }
    }
  }

  async forget(rolloutId: string, lease: string): Promise<void> {
    const key = keyOf(rolloutId);
    using limit = claimLimit(never);
    const { signal } = limit;
    for (;;) {
      const found = await this.#read(key, signal);
      if (found?.claim.lease !== lease) return;
      try {
        await this.#bucket.purge(key, { previousSeq: found.revision });
        return;
      } catch {
        await delay(retryMs, undefined, { signal });
      }
    }
  }

  /** A life of the front end begins; true = the one before it did not end in order. */
  async frontBegins(epoch: string, signal: AbortSignal): Promise<boolean> {
    for (;;) {
      signal.throwIfAborted();
      try {
        const before = await this.#bucket.get(frontKey);
        await this.#bucket.put(frontKey, epoch);
        return before?.operation === 'PUT' && before.string() !== epoch;
      } catch {
        await delay(retryMs, undefined, { signal });
      }
    }
  }

  async frontEnds(): Promise<void> {
    await this.#bucket.purge(frontKey);
  }

  /** Of lives of the front end that are over. */
  async ofOtherEpochs(epoch: string, signal: AbortSignal): Promise<readonly Claim[]> {
    const found: Claim[] = [];
    for await (const key of await this.#bucket.keys('r.>')) {
      const held = await this.#read(key, signal);
      if (held !== null && held.claim.epoch !== epoch) found.push(held.claim);
    }
    return found;
  }

  /** Tries until the bucket answers. */
  async #read(key: string, signal: AbortSignal): Promise<HeldClaim | null> {
    for (;;) {
      signal.throwIfAborted();
      try {
        const entry = await this.#bucket.get(key);
        if (entry?.operation !== 'PUT') return null;
        return { claim: JSON.parse(entry.string()) as Claim, revision: entry.revision };
      } catch {
        await delay(retryMs, undefined, { signal });
      }
    }
  }
}

/** Ids are any text; keys are letters, digits and few signs. */
function keyOf(rolloutId: string): string {
  return `r.${Buffer.from(rolloutId).toString('base64url')}`;
}

function encode(claim: Claim): Uint8Array {
  return encoder.encode(JSON.stringify(claim));
}
