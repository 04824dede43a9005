import { dirname } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { attribute } from '../../core/errors.ts';
import { makeFolderSync } from '../../core/make-folder.ts';
import type { CreationAnswer, CreationAsk, SandboxLedger, SandboxUse } from '../sandbox-ledger.ts';

const dayMs = 24 * 60 * 60_000;
const hourMs = 60 * 60_000;

/** A waiter that was not seen for this long has died. */
const waiterLivesMs = 10_000;

/** Behind somebody else, or at the limit of live sandboxes: how soon to look again. */
const lookAgainMs = 100;

/** Creations are spread evenly, a little slower than allowed: on their way to the provider, some over new connections, they come closer together by up to 100 ms. */
const spread = 1.1;

const schema = `
  CREATE TABLE IF NOT EXISTS sandboxes (
    kind TEXT NOT NULL, name TEXT NOT NULL, begun_ms REAL NOT NULL, expires_ms REAL NOT NULL, gone_ms REAL,
    PRIMARY KEY (kind, name)
  );
  CREATE TABLE IF NOT EXISTS paces (kind TEXT PRIMARY KEY, created_ms REAL NOT NULL, paused_until_ms REAL NOT NULL);
  CREATE TABLE IF NOT EXISTS waiters (
    place INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, waiter TEXT NOT NULL UNIQUE, seen_ms REAL NOT NULL
  );
`;

/** One file for all processes. Every call is one short transaction; a power cut may lose the last of them, which the journal makes up for. */
export class SqliteSandboxLedger implements SandboxLedger {
  readonly #database: DatabaseSync;
  readonly #file: string;
  #isClosed = false;

  private constructor(database: DatabaseSync, file: string) {
    this.#database = database;
    this.#file = file;
  }

  /** STORE_FAILED. */
  static open(file: string): SqliteSandboxLedger {
    try {
      makeFolderSync(dirname(file));
      const database = new DatabaseSync(file);
      try {
        database.exec('PRAGMA busy_timeout = 5000; PRAGMA journal_mode = WAL');
        database.exec(`PRAGMA synchronous = OFF; ${schema}`);
        return new SqliteSandboxLedger(database, file);
      } catch (error) {
        database.close();
        throw error;
      }
    } catch (error) {
      throw attribute(error, 'STORE_FAILED', 'environment', `cannot open ${file}`);
    }
  }

  ask(ask: CreationAsk): CreationAnswer {
    return this.#atomically(() => {
      const { kind, waiter, limits, nowMs } = ask;
      this.#run('DELETE FROM waiters WHERE seen_ms < ?', nowMs - waiterLivesMs);
      this.#run(
        'INSERT INTO waiters (kind, waiter, seen_ms) VALUES (?, ?, ?) ON CONFLICT (waiter) DO UPDATE SET seen_ms = excluded.seen_ms',
        ...[kind, waiter, nowMs],
      );
      const answer = this.#answer(ask);
      if (answer.state === 'waiting') return answer;
      this.#run('DELETE FROM waiters WHERE waiter = ?', waiter);
      if (answer.state === 'exhausted') return answer;
      this.#take(ask, gapMs(limits.createsPerSecond), nowMs);
      return answer;
    });
  }

  leave(waiter: string): void {
    this.#atomically(() => this.#run('DELETE FROM waiters WHERE waiter = ?', waiter));
  }

  pause(kind: string, untilMs: number): void {
    this.#atomically(() =>
      this.#run(
        `INSERT INTO paces (kind, created_ms, paused_until_ms) VALUES (?, 0, ?)
         ON CONFLICT (kind) DO UPDATE SET paused_until_ms = max(paused_until_ms, excluded.paused_until_ms)`,
        ...[kind, untilMs],
      ),
    );
  }

  gone(kind: string, name: string, nowMs: number): void {
    this.#atomically(() =>
      this.#run(
        'UPDATE sandboxes SET gone_ms = ? WHERE kind = ? AND name = ? AND gone_ms IS NULL',
        ...[nowMs, kind, name],
      ),
    );
  }

  use(kind: string, nowMs: number): SandboxUse {
    const row = this.#database
      .prepare(
        `SELECT count(*) FILTER (WHERE gone_ms IS NULL AND expires_ms > :now) AS live,
                coalesce(sum(max(0, min(coalesce(gone_ms, :now), expires_ms, :now) - max(begun_ms, :since))), 0) AS used
         FROM sandboxes WHERE kind = :kind`,
      )
      .get({ kind, now: nowMs, since: nowMs - dayMs });
    return { live: Number(row?.['live'] ?? 0), hours: Number(row?.['used'] ?? 0) / hourMs };
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#database.close();
  }

  #answer({ kind, waiter, sandbox, limits, nowMs }: CreationAsk): CreationAnswer {
    if (sandbox !== null && (limits.maxHours !== null || limits.maxLive !== null)) {
      const { live, hours } = this.use(kind, nowMs);
      if (limits.maxHours !== null && hours >= limits.maxHours)
        return { state: 'exhausted', usedHours: hours };
      if (limits.maxLive !== null && live >= limits.maxLive)
        return { state: 'waiting', askAgainMs: lookAgainMs, isHeld: true };
    }
    const pace = this.#database
      .prepare('SELECT created_ms, paused_until_ms FROM paces WHERE kind = ?')
      .get(kind);
    const pausedMs = Number(pace?.['paused_until_ms'] ?? 0) - nowMs;
    const soonMs = Number(pace?.['created_ms'] ?? 0) + gapMs(limits.createsPerSecond) - nowMs;
    const waitMs = Math.max(pausedMs, soonMs);
    if (waitMs > 0) return { state: 'waiting', askAgainMs: waitMs, isHeld: false };
    return this.#isFirst(kind, { waiter, isFurther: sandbox === null })
      ? { state: 'admitted' }
      : { state: 'waiting', askAgainMs: lookAgainMs, isHeld: false };
  }

  /** A further call of a creation that has begun goes before new ones, which a full house may be holding. */
  #isFirst(
    kind: string,
    { waiter, isFurther }: { readonly waiter: string; readonly isFurther: boolean },
  ): boolean {
    if (isFurther) return true;
    const first = this.#database
      .prepare('SELECT waiter FROM waiters WHERE kind = ? ORDER BY place LIMIT 1')
      .get(kind);
    return first?.['waiter'] === waiter;
  }

  #take({ kind, sandbox }: CreationAsk, gap: number, nowMs: number): void {
    if (sandbox !== null) {
      this.#run(
        `INSERT INTO sandboxes (kind, name, begun_ms, expires_ms, gone_ms) VALUES (?, ?, ?, ?, NULL)
         ON CONFLICT (kind, name) DO UPDATE SET begun_ms = excluded.begun_ms, expires_ms = excluded.expires_ms, gone_ms = NULL`,
        ...[kind, sandbox.name, nowMs, sandbox.expiresAtMs],
      );
      this.#run(
        'DELETE FROM sandboxes WHERE min(expires_ms, coalesce(gone_ms, expires_ms)) < ?',
        nowMs - dayMs,
      );
    }
    if (gap > 0)
      this.#run(
        `INSERT INTO paces (kind, created_ms, paused_until_ms) VALUES (?, ?, 0)
         ON CONFLICT (kind) DO UPDATE SET created_ms = excluded.created_ms`,
        ...[kind, nowMs],
      );
  }

  #run(sql: string, ...values: readonly (string | number)[]): void {
    this.#database.prepare(sql).run(...values);
  }

  #atomically<T>(work: () => T): T {
    try {
      this.#database.exec('BEGIN IMMEDIATE');
      try {
        const result = work();
        this.#database.exec('COMMIT');
        return result;
      } catch (error) {
        this.#database.exec('ROLLBACK');
        throw error;
      }
    } catch (error) {
      throw attribute(error, 'STORE_FAILED', 'environment', `the ledger ${this.#file}`);
    }
  }
}

function gapMs(perSecond: number | null): number {
  return perSecond === null ? 0 : (1000 / perSecond) * spread;
}
