/**
 * Where a controller waits for what its rollouts become. One session per rollout; the grader callback ends it, or the completion for a rollout that nobody
 * grades, or a time limit, or a cancellation: whichever is first. The end is committed once, and nobody gets an acknowledgement before the commit resolved.
 * A commit that fails leaves the session open: the callback is answered with an error, comes again and commits then. An equal duplicate gets the same
 * acknowledgement; one that says something else is reported, and the first stays. An id that has ended cannot be registered again before it is forgotten.
 */
import { canonicalJson } from '../core/canonical-json.ts';
import type { CallbackChannel } from '../wire/rollout/callback-payloads.ts';
import { raceSignal } from '../core/race-signal.ts';

/** The JSON object of a callback, as it came. */
export type CallbackDocument = Readonly<Record<string, unknown>>;

/** What the sender gets back: it may hold `trajectory`, a report about the rollout's model calls. */
export type AckDocument = Readonly<Record<string, unknown>>;

export interface RolloutEnd {
  readonly rolloutId: string;
  readonly by: 'callback' | 'timeout' | 'cancelled';
  readonly completion: CallbackDocument | null;
  readonly grader: CallbackDocument | null;
}

export interface RendezvousOptions {
  /** Makes the end durable; its answer is the acknowledgement. Called once more only when it rejected. Not called for a cancellation. */
  readonly commit?: (end: RolloutEnd) => Promise<AckDocument | undefined>;
  /** A second callback of one channel that says something else. */
  readonly onConflict?: (rolloutId: string, channel: CallbackChannel) => void;
}

interface Session {
  readonly isGraded: boolean;
  completion: CallbackDocument | null;
  committing: Promise<StoredEnd> | null;
  stored: StoredEnd | null;
  readonly ended: PromiseWithResolvers<RolloutEnd>;
}

interface StoredEnd {
  readonly end: RolloutEnd;
  readonly ack: AckDocument;
}

const plainAck: AckDocument = { ok: true };

export class CallbackRendezvous {
  readonly #options: RendezvousOptions;
  readonly #sessions = new Map<string, Session>();

  constructor(options: RendezvousOptions = {}) {
    this.#options = options;
  }

  /** Without `isGraded` the completion ends the rollout. Throws for an id that lives or has ended. */
  register(rolloutId: string, { isGraded }: { readonly isGraded: boolean }): void {
    if (this.#sessions.has(rolloutId))
      throw new Error(`a rollout of this id is or was under way: ${rolloutId}`);
    const ended = Promise.withResolvers<RolloutEnd>();
    const session = { isGraded, completion: null, committing: null, stored: null, ended };
    this.#sessions.set(rolloutId, session);
  }

  /** Takes a callback; null = no rollout of this id. Rejects when its end could not be committed. */
  async receive(
    rolloutId: string,
    channel: CallbackChannel,
    document: CallbackDocument,
  ): Promise<AckDocument | null> {
    const session = this.#sessions.get(rolloutId);
    if (session === undefined) return null;
    if (channel === 'completion') session.completion ??= document;
    const isLast = channel === 'grader' || !session.isGraded;
    const { end, ack } =
      session.stored ??
      (isLast
        ? await this.#commit(session, {
            rolloutId,
            by: 'callback',
            completion: session.completion,
            grader: channel === 'grader' ? document : null,
          })
        : { end: null, ack: plainAck });
    const first = channel === 'grader' ? (end?.grader ?? null) : session.completion;
    if (first !== null && canonicalJson(first) !== canonicalJson(document))
      this.#options.onConflict?.(rolloutId, channel);
    return ack;
  }

  /** Ends the rollout for being late, unless it has ended; answers how it did. Rejects when that could not be committed. */
  async timeOut(rolloutId: string): Promise<RolloutEnd> {
    const session = this.#session(rolloutId);
    if (session.stored !== null) return session.stored.end;
    const { completion } = session;
    const end: RolloutEnd = { rolloutId, by: 'timeout', completion, grader: null };
    return (await this.#commit(session, end)).end;
  }

  /** Ends the rollout without a commit, unless it has ended or is being committed; answers how it did. */
  async cancel(rolloutId: string): Promise<RolloutEnd> {
    const session = this.#session(rolloutId);
    if (session.committing !== null) return (await session.committing).end;
    const { completion } = session;
    const end: RolloutEnd = { rolloutId, by: 'cancelled', completion, grader: null };
    return (session.stored ?? this.#store(session, { end, ack: plainAck })).end;
  }

  /** Nothing is known of it any more: its callbacks find nobody, and the id is free again. Nobody may wait for it. */
  forget(rolloutId: string): void {
    this.#sessions.delete(rolloutId);
  }

  /** Resolves when the rollout has ended. Rejects with the reason of `signal`; the rollout goes on. */
  async ended(rolloutId: string, signal: AbortSignal): Promise<RolloutEnd> {
    return await raceSignal(this.#session(rolloutId).ended.promise, signal);
  }

  #session(rolloutId: string): Session {
    const session = this.#sessions.get(rolloutId);
    if (session === undefined) throw new Error(`no rollout of this id: ${rolloutId}`);
    return session;
  }

  /** One commit at a time; whoever comes meanwhile waits for it, whatever it wanted to say itself. */
  #commit(session: Session, end: RolloutEnd): Promise<StoredEnd> {
    session.committing ??= this.#runCommit(session, end);
    return session.committing;
  }

  async #runCommit(session: Session, end: RolloutEnd): Promise<StoredEnd> {
    try {
      const late = end.by === 'timeout' ? { ok: true, error_type: 'callback_timeout' } : plainAck;
      const ack = (await this.#options.commit?.(end)) ?? late;
      return this.#store(session, { end, ack });
    } finally {
      session.committing = null;
    }
  }

  #store(session: Session, stored: StoredEnd): StoredEnd {
    session.stored = stored;
    session.ended.resolve(stored.end);
    return stored;
  }
}
