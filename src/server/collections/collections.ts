/** The collections of a server: who may see which, how many there may be, and their end with the server's. */
import { collectorBegin } from '../../collector/group-source.ts';
import type { Clock } from '../../core/clock.ts';
import { lowerId } from '../../core/ids.ts';
import type { Logger } from '../../core/logger.ts';
import type { Caller } from '../../scheduler/rollout-service.ts';
import type { CollectionRequest } from '../../wire/api/collection.ts';
import { Collection } from './collection.ts';
import { positionOf } from './documents.ts';
import type { OpenCollector } from './open-collector.ts';

export interface CollectionsParts {
  readonly open: OpenCollector;
  readonly clock: Clock;
  readonly logger: Logger;
  /** In all; those that are over go first. */
  readonly max: number;
}

export class Collections {
  readonly #parts: CollectionsParts;
  readonly #all = new Map<string, Collection>();
  /** Being opened: they count. */
  #opening = 0;
  #closing: Promise<void> | null = null;

  constructor(parts: CollectionsParts) {
    this.#parts = parts;
  }

  get isClosed(): boolean {
    return this.#closing !== null;
  }

  /** null = there is no room. Rejects as `OpenCollector` does. */
  async create(request: CollectionRequest, owner: Caller): Promise<Collection | null> {
    if (!this.#makeRoom()) return null;
    const { open, clock, logger } = this.#parts;
    const id = `collection-${lowerId(12)}`;
    const { batches, ahead_groups: aheadGroups, weight_version: weightVersion, position } = request;
    const from = position === null ? collectorBegin : positionOf(position);
    this.#opening += 1;
    try {
      const collector = await open(request, {
        ...{ name: id, caller: owner, from },
        weightVersion: () => this.#all.get(id)?.weightVersion ?? null,
      });
      const collection = new Collection({
        ...{ id, owner, collector, batches, aheadGroups, weightVersion },
        ...{ from, clock, logger },
      });
      this.#all.set(id, collection);
      collection.start();
      if (this.isClosed) await collection.stop('shutdown');
      logger.log('info', 'a collection begins', { collection: id, rows: collector.rows });
      return collection;
    } finally {
      this.#opening -= 1;
    }
  }

  /** Oldest first. */
  list(caller: Caller): readonly Collection[] {
    return [...this.#all.values()].filter((each) => maySee(caller, each));
  }

  /** null = none that the caller may see. */
  find(id: string, caller: Caller): Collection | null {
    const found = this.#all.get(id);
    return found !== undefined && maySee(caller, found) ? found : null;
  }

  /** Stops them all. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= Promise.all(
      [...this.#all.values()].map((each) => each.stop('shutdown')),
    ).then(() => undefined);
    return this.#closing;
  }

  #makeRoom(): boolean {
    if (this.#all.size + this.#opening < this.#parts.max) return true;
    const over = [...this.#all.values()].find(({ isOver }) => isOver);
    return over !== undefined && this.#all.delete(over.id);
  }
}

function maySee({ tenant }: Caller, { owner }: Collection): boolean {
  return tenant === null || tenant === owner.tenant;
}
