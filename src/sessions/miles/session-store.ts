import { randomBytes } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';
import { MilesSession, type SessionRules } from './miles-session.ts';
import { refusal } from './session-error.ts';

export interface SessionStoreOptions {
  readonly rules: SessionRules;
  readonly clock: Clock;
  /** A session that is not used for so long is gone; null = sessions live until they are deleted. */
  readonly maxIdleMs: number | null;
}

/** Of ids that have expired; older ones are as unknown as any. */
const mostExpired = 100_000;

interface Held {
  readonly session: MilesSession;
  usedMs: number;
  /** Calls that its engine works on. */
  running: number;
}

/** The sessions of one instance. They are in memory: a new process has none of them, and says so by its id. */
export class SessionStore {
  /** Of this instance, for as long as it lives. */
  readonly instanceId = newId();
  readonly #options: SessionStoreOptions;
  /** The longest unused first. */
  readonly #held = new Map<string, Held>();
  readonly #expired = new Set<string>();

  constructor(options: SessionStoreOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#held.size;
  }

  create(): MilesSession {
    this.#expire();
    const session = new MilesSession(newId(), this.#options.rules);
    this.#held.set(session.id, {
      ...{ session, running: 0 },
      usedMs: this.#options.clock.monotonicMs(),
    });
    return session;
  }

  /** SESSION_NOT_FOUND, SESSION_EXPIRED. Counts as use. */
  get(id: string): MilesSession {
    this.#expire();
    const held = this.#held.get(id);
    if (held === undefined) throw this.#missing(id);
    this.#use(held);
    return held.session;
  }

  /** While its engine works the session is in use. */
  async during<T>({ id }: MilesSession, work: () => Promise<T>): Promise<T> {
    const held = this.#held.get(id);
    if (held === undefined) return await work();
    held.running += 1;
    try {
      return await work();
    } finally {
      held.running -= 1;
      if (this.#held.get(id) === held) this.#use(held);
    }
  }

  /** Whether it is still the session of its id: one that was deleted takes no more turns. */
  isLive(session: MilesSession): boolean {
    return this.#held.get(session.id)?.session === session;
  }

  /** SESSION_NOT_FOUND, SESSION_EXPIRED. */
  delete(id: string): void {
    this.#expire();
    if (!this.#held.delete(id)) throw this.#missing(id);
  }

  #use(held: Held): void {
    held.usedMs = this.#options.clock.monotonicMs();
    this.#held.delete(held.session.id);
    this.#held.set(held.session.id, held);
  }

  #expire(): void {
    const { clock, maxIdleMs } = this.#options;
    if (maxIdleMs === null) return;
    const before = clock.monotonicMs() - maxIdleMs;
    for (const [id, { usedMs, running }] of this.#held) {
      if (usedMs > before) break;
      if (running > 0) continue;
      this.#held.delete(id);
      this.#expired.add(id);
      const [oldest] = this.#expired;
      if (this.#expired.size > mostExpired && oldest !== undefined) this.#expired.delete(oldest);
    }
  }

  #missing(id: string): Error {
    return this.#expired.has(id)
      ? refusal('SESSION_EXPIRED', `session expired: session_id=${id}`)
      : refusal('SESSION_NOT_FOUND', `session not found: session_id=${id}`);
  }
}

/** 32 hexadecimal digits. */
function newId(): string {
  return randomBytes(16).toString('hex');
}
