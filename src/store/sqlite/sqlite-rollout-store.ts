import type { Clock } from '../../core/clock.ts';
import type { HeldLock, LockPort } from '../../core/lock.ts';
import type { Logger } from '../../core/logger.ts';
import type { CancelReceipt } from '../../wire/rollout/receipt.ts';
import type { Tombstone } from '../rollout-records.ts';
import type {
  AcceptAnswer,
  Delivery,
  LeftRollouts,
  NewEvent,
  NewRollout,
  Retention,
  RolloutChange,
  RolloutQuery,
  RolloutStore,
  StoredRollout,
} from '../rollout-store.ts';
import { copyStore } from './copy-store.ts';
import { schemaSteps, type SchemaStep } from './schema.ts';
import { syncFolder } from '../sync-folder.ts';
import { holdFolder, storeFile } from './store-folder.ts';
import { StoreThread } from './store-thread.ts';
import type { CommitFigures } from './worker-messages.ts';

export interface SqliteStoreParts {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly locks: LockPort;
  /** Ends the opening. An open store ends by `close`. */
  readonly signal: AbortSignal;
  /** An observer of transactions, for whoever counts them; it must not throw. */
  readonly onCommit?: (commit: CommitFigures) => void;
  /** It cannot be used any more, and nobody closed it: STORE_DAMAGED, or STORE_FAILED when its thread has ended. */
  readonly onLost?: (reason: Error) => void;
}

export interface SqliteStoreOptions {
  /** The file never grows beyond it: what would make it grow rejects with DISK_FULL. Default: as far as the disk goes. */
  readonly maxSizeBytes?: number;
  /** For tests of upgrades. */
  readonly steps?: readonly SchemaStep[];
}

/** Rows of one prune step: small, so that callbacks and acceptances go on between two of them. */
const pruneRows = 200;
const shrinkPages = 256;

/**
 * `<folder>/store.sqlite`, written by a thread of its own (`store-worker.ts`): calls made at the same time share one transaction and one sync, and the event
 * loop waits for neither. The folder is locked (`store.lock`) until the store is closed or the process dies.
 */
export class SqliteRolloutStore implements RolloutStore {
  readonly #file: string;
  readonly #clock: Clock;
  readonly #lock: HeldLock;
  readonly #thread: StoreThread;
  readonly #listeners: Set<() => void>;
  /** Of every row: some 90 bytes each, as many as retention keeps. */
  readonly #ids: Set<string>;
  #closing: Promise<void> | null = null;

  private constructor(parts: {
    readonly file: string;
    readonly clock: Clock;
    readonly lock: HeldLock;
    readonly thread: StoreThread;
    readonly listeners: Set<() => void>;
    readonly ids: readonly string[];
  }) {
    this.#file = parts.file;
    this.#clock = parts.clock;
    this.#lock = parts.lock;
    this.#thread = parts.thread;
    this.#listeners = parts.listeners;
    this.#ids = new Set(parts.ids);
  }

  /** Makes the folder when it is missing. Rejects with STORE_LOCKED, STORE_TOO_NEW, STORE_DAMAGED, DISK_FULL or STORE_FAILED. */
  static async open(
    folder: string,
    { clock, logger, locks, signal, onCommit, onLost }: SqliteStoreParts,
    { maxSizeBytes, steps = schemaSteps }: SqliteStoreOptions = {},
  ): Promise<SqliteRolloutStore> {
    signal.throwIfAborted();
    const lock = await holdFolder(folder, locks);
    try {
      const file = storeFile(folder);
      const listeners = new Set<() => void>();
      const task = { file, steps, maxSizeBytes: maxSizeBytes ?? null };
      const { thread, copy } = await StoreThread.start(task, {
        signal,
        onCommit: onCommit ?? (() => undefined),
        onLost: onLost ?? (() => undefined),
        onEvents: () => {
          for (const listener of [...listeners]) listener();
        },
      });
      if (copy !== null)
        logger.log('info', 'the store was upgraded', { file, version: steps.length, copy });
      try {
        await syncFolder(folder);
        const ids = await thread.call('ids', undefined);
        return new SqliteRolloutStore({ file, clock, lock, thread, listeners, ids });
      } catch (error) {
        await thread.close();
        throw error;
      }
    } catch (error) {
      lock.release();
      throw error;
    }
  }

  async accept(rollout: NewRollout): Promise<AcceptAnswer> {
    const answer = await this.#thread.call('accept', rollout);
    this.#ids.add(rollout.id);
    return answer;
  }

  change(change: RolloutChange): Promise<boolean> {
    return this.#thread.call('change', { change, now: this.#clock.now() });
  }

  async bury(tombstones: readonly Tombstone[]): Promise<void> {
    await this.#thread.call('bury', tombstones);
    for (const { id } of tombstones) this.#ids.add(id);
  }

  note(events: readonly NewEvent[]): Promise<void> {
    return this.#thread.call('note', events, { isLazy: true });
  }

  rollout(id: string): Promise<StoredRollout | null> {
    return this.#thread.call('rollout', id);
  }

  knows(id: string): boolean {
    return this.#ids.has(id);
  }

  list(query: RolloutQuery): Promise<readonly StoredRollout[]> {
    return this.#thread.call('list', query);
  }

  receipts(rolloutId: string): Promise<readonly CancelReceipt[]> {
    return this.#thread.call('receipts', rolloutId);
  }

  events(options: Parameters<RolloutStore['events']>[0]): ReturnType<RolloutStore['events']> {
    return this.#thread.call('events', options);
  }

  onEvents(listener: () => void): () => void {
    // Each registration is its own, also when one function is registered twice.
    const own = (): void => listener();
    this.#listeners.add(own);
    return () => void this.#listeners.delete(own);
  }

  deliveries(rolloutId: string): Promise<readonly Delivery[]> {
    return this.#thread.call('deliveries', rolloutId);
  }

  delivered(
    key: string,
    { attempts, controllerReport }: Parameters<RolloutStore['delivered']>[1],
  ): Promise<void> {
    const now = this.#clock.now();
    const end = { key, state: 'delivered', attempts, error: null, now } as const;
    return this.#thread.call('ended', { ...end, controllerReport });
  }

  attempted(
    key: string,
    { attempts, error }: Parameters<RolloutStore['attempted']>[1],
  ): Promise<void> {
    const now = this.#clock.now();
    const end = { key, state: 'pending', attempts, error, now, controllerReport: null } as const;
    return this.#thread.call('ended', end, { isLazy: true });
  }

  dead(key: string, { attempts, error }: Parameters<RolloutStore['dead']>[1]): Promise<void> {
    const now = this.#clock.now();
    const end = { key, state: 'dead', attempts, error, now, controllerReport: null } as const;
    return this.#thread.call('ended', end);
  }

  deadLetters(options: Parameters<RolloutStore['deadLetters']>[0]): Promise<readonly Delivery[]> {
    return this.#thread.call('deadLetters', options);
  }

  replay(key: string, tenant?: string): Promise<Delivery | null> {
    return this.#thread.call('replay', { key, tenant: tenant ?? null });
  }

  recover(): Promise<LeftRollouts> {
    return this.#thread.call('recover', undefined);
  }

  async prune({ maxAgeMs, maxEnded }: Retention, now: Date): ReturnType<RolloutStore['prune']> {
    const since = now.getTime() - maxAgeMs;
    const removedIds: string[] = [];
    let events = 0;
    for (;;) {
      const step = await this.#thread.call('pruneSome', { since, maxEnded, limit: pruneRows });
      if (step.removedIds.length === 0 && step.events === 0) break;
      for (const id of step.removedIds) this.#ids.delete(id);
      removedIds.push(...step.removedIds);
      events += step.events;
    }
    let free = Infinity;
    for (;;) {
      const left = await this.#thread.call('shrink', shrinkPages);
      if (left === 0 || left >= free) break;
      free = left;
    }
    return { rollouts: removedIds.length, events, removedIds };
  }

  async backup(path: string, signal: AbortSignal): Promise<void> {
    await copyStore(this.#file, path, signal);
  }

  close(): Promise<void> {
    this.#closing ??= this.#thread.close().finally(() => this.#lock.release());
    return this.#closing;
  }
}
