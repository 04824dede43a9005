/** Keys that parts of the server call it with, as whoever they work for. They are known to this process alone, and end with what they were made for. */
import { createHash, randomBytes } from 'node:crypto';
import type { Caller } from '../scheduler/rollout-service.ts';
import type { KeyRing } from './key-ring.ts';

export class OwnKeys implements KeyRing {
  readonly #callers: KeyRing;
  /** By digest: to find one says nothing about another. */
  readonly #own = new Map<string, Caller>();

  /** `callers`: the keys that everybody else has. */
  constructor(callers: KeyRing) {
    this.#callers = callers;
  }

  get hasKeys(): boolean {
    return this.#callers.hasKeys;
  }

  identify(key: string): Caller | null {
    return this.#own.get(digestOf(key)) ?? this.#callers.identify(key);
  }

  /** A new key; `end` takes it back. */
  issue(caller: Caller): { readonly key: string; readonly end: () => void } {
    const key = randomBytes(32).toString('base64url');
    const digest = digestOf(key);
    this.#own.set(digest, caller);
    return { key, end: () => void this.#own.delete(digest) };
  }
}

function digestOf(key: string): string {
  return createHash('sha256').update(key).digest('base64');
}
