import { randomBytes } from 'node:crypto';
import type { Clock } from '../../core/clock.ts';
import type { ChatReply } from './chat-reply.ts';
import { MilesSession, type SessionRules } from './miles-session.ts';
import { refusal } from './session-error.ts';
import type { PreparedTurn } from './turn-node.ts';

export interface SessionStoreOptions {
  readonly rules: SessionRules;
  readonly clock: Clock;
  /** A session that is not used for so long is gone; null = sessions live until they are deleted. */
  readonly maxIdleMs: number | null;
  /** About what all sessions together may take of memory: beyond it no turn is begun, and no session is made some time before. */
  readonly maxBytes: number;
}

/** Of the memory; the rest is for sessions that are at work. */
const shareForNew = 0.875;

/** Of ids that have expired; older ones are as unknown as any. */
const mostExpired = 100_000;

interface Held {
  readonly session: MilesSession;
  usedMs: number;
  bytes: number;
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
  #bytes = 0;

  constructor(options: SessionStoreOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#held.size;
  }

  /** SESSION_MEMORY_FULL. */
  create(): MilesSession {
    this.#expire();
    this.#checkRoom(shareForNew);
    const session = new MilesSession(newId(), this.#options.rules);
    this.#held.set(session.id, {
      ...{ session, running: 0, bytes: 0 },
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

  /** Before a turn is begun. SESSION_MEMORY_FULL. */
  checkRoom(): void {
    this.#expire();
    this.#checkRoom(1);
  }

  /** Keeps a turn with its answer. False: its session was deleted meanwhile, or has moved on. */
  commit({ id, turns }: MilesSession, turn: PreparedTurn, reply: ChatReply): boolean {
    const held = this.#held.get(id);
    if (held?.session.turns !== turns || !turns.commit(turn, reply)) return false;
    this.#bytes += turns.bytes - held.bytes;
    held.bytes = turns.bytes;
    return true;
  }

  /** SESSION_NOT_FOUND, SESSION_EXPIRED. */
  delete(id: string): void {
    this.#expire();
    const held = this.#held.get(id);
    if (held === undefined) throw this.#missing(id);
    this.#forget(held);
  }

  #forget({ session, bytes }: Held): void {
    this.#held.delete(session.id);
    this.#bytes -= bytes;
  }

  #checkRoom(share: number): void {
    const { maxBytes } = this.#options;
    if (this.#bytes < maxBytes * share) return;
    throw refusal(
      'SESSION_MEMORY_FULL',
      `the ${this.#held.size} sessions of this instance take ${this.#bytes} bytes of memory, of ${maxBytes} that they may`,
    );
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
    for (const [id, held] of this.#held) {
      if (held.usedMs > before) break;
      if (held.running > 0) continue;
      this.#forget(held);
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
