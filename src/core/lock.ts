/** A lock on a file that the operating system releases when its holder dies. */
export interface HeldLock {
  /** Idempotent. */
  release(): void;
}

/**
 * Locks between processes, by absolute path. Used for cache entries, image layers and run ownership.
 * The lock is tied to the process: `kill -9` frees it.
 */
export interface LockPort {
  /** Takes the lock or answers null at once when another process, or another caller in this one, holds it. */
  tryAcquire(file: string): HeldLock | null;
  /** Waits for the lock until `signal` fires (rejects with its reason) or `timeoutMs` passes (LOCK_TIMEOUT). */
  acquire(
    file: string,
    options: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<HeldLock>;
}
