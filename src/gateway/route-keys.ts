/**
 * Which route a key stands for. Keys are opaque, random and known here only by their hash: what a memory dump or a log of this table shows cannot be
 * used. A rollout has one live key; a key that was replaced or revoked is unknown from that moment on.
 */
import { createHash, randomBytes } from 'node:crypto';

/** 256 bits. */
const keyBytes = 32;
/** Some agents look at the first letters of a key before they use it. */
const keyPrefix = 'sk-slipway-';
/** What is longer is no key of ours and is not hashed. */
const longestKey = 128;

export class RouteKeys<Route> {
  readonly #byHash = new Map<string, Route>();
  readonly #hashes = new Map<string, string>();

  get size(): number {
    return this.#byHash.size;
  }

  /** A fresh key; the one that the rollout had before is dead. */
  add(rolloutId: string, route: Route): string {
    this.remove(rolloutId);
    const key = keyPrefix + randomBytes(keyBytes).toString('base64url');
    const hash = hashOf(key);
    this.#byHash.set(hash, route);
    this.#hashes.set(rolloutId, hash);
    return key;
  }

  find(key: string): Route | null {
    if (key.length > longestKey) return null;
    return this.#byHash.get(hashOf(key)) ?? null;
  }

  remove(rolloutId: string): void {
    const hash = this.#hashes.get(rolloutId);
    if (hash === undefined) return;
    this.#hashes.delete(rolloutId);
    this.#byHash.delete(hash);
  }
}

function hashOf(key: string): string {
  return createHash('sha256').update(key).digest('base64url');
}
