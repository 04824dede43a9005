/**
 * Port: what all processes of this machine have running at a provider of sandboxes, and how fast they create. It is asked before each creation,
 * so that limits hold for all processes together; it is not the journal, and removes nothing. A sandbox whose process was killed stays in it until it
 * has been cleaned up or is past its expiry.
 */
export interface SandboxLimits {
  /** Create calls per second; null = any. */
  readonly createsPerSecond: number | null;
  /** Sandboxes at once; null = any. */
  readonly maxLive: number | null;
  /** Hours of all sandboxes together within the last 24; null = any. */
  readonly maxHours: number | null;
}

export interface CreationAsk {
  /** Kind of the provider: `daytona`. */
  readonly kind: string;
  /** Unique among all who wait: whoever asked first is served first. */
  readonly waiter: string;
  /** Sandbox that is created; null = a further call for one that is in the ledger. */
  readonly sandbox: { readonly name: string; readonly expiresAtMs: number } | null;
  readonly limits: SandboxLimits;
  /** Wall clock, milliseconds. */
  readonly nowMs: number;
}

export type CreationAnswer =
  | { readonly state: 'admitted' }
  /** Ask again after `askAgainMs`; `isHeld`: nobody's turn comes before a sandbox is gone. */
  | { readonly state: 'waiting'; readonly askAgainMs: number; readonly isHeld: boolean }
  | { readonly state: 'exhausted'; readonly usedHours: number };

export interface SandboxUse {
  readonly live: number;
  /** Within the last 24 hours. */
  readonly hours: number;
}

export interface SandboxLedger {
  /** Admits, or keeps the place in the queue. Whoever does not ask again for 10 s has left it. STORE_FAILED. */
  ask(ask: CreationAsk): CreationAnswer;
  /** Gives the place in the queue up. Idempotent. */
  leave(waiter: string): void;
  /** Nobody creates at this provider before `untilMs`. An earlier end than the present one changes nothing. */
  pause(kind: string, untilMs: number): void;
  /** The sandbox is gone. Idempotent, also for names that nobody knows. */
  gone(kind: string, name: string, nowMs: number): void;
  use(kind: string, nowMs: number): SandboxUse;
  close(): void;
}
