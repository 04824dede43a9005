/**
 * Which route a key stands for. Keys are opaque, random and known here only by their hash: what a memory dump or a log of this table shows cannot be
 * used. A rollout has one live key; a key that was replaced or revoked is unknown from that moment on.
 */
import { hash, randomBytes } from 'node:crypto';

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
    const key = keyPrefix + randomBytes(keyBytes).toString('base64url');
    this.addHashed(rolloutId, keyHashOf(key), route);
    return key;
  }

  /** A key that the rollout has already. */
  addHashed(rolloutId: string, hash: string, route: Route): void {
    this.remove(rolloutId);
    this.#byHash.set(hash, route);
    this.#hashes.set(rolloutId, hash);
  }

  find(key: string): Route | null {
    return this.findHashed(askedHashOf(key));
  }

  /** As `askedHashOf` gives it. */
  findHashed(hash: string | null): Route | null {
    return hash === null ? null : (this.#byHash.get(hash) ?? null);
  }

  remove(rolloutId: string): void {
    const hash = this.#hashes.get(rolloutId);
    if (hash === undefined) return;
    this.#hashes.delete(rolloutId);
    this.#byHash.delete(hash);
  }
}

/** Of a key that somebody asks with; null = it is none of ours. */
export function askedHashOf(key: string): string | null {
  return key.length > longestKey ? null : keyHashOf(key);
}

export function keyHashOf(key: string): string {
  return hash('sha256', key, 'base64url');
}
