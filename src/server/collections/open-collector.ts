import type { CollectorDriver } from '../../collector/drivers/driver.ts';
import type { CollectorPosition } from '../../collector/group-source.ts';
import type { CollectionRequest } from '../../wire/api/collection.ts';
import type { Caller } from '../../scheduler/rollout-service.ts';

/** A driver and everything that it is made of. */
export interface OpenedCollector {
  readonly driver: CollectorDriver;
  readonly rows: number;
  readonly skippedLines: number;
  /** Nothing is started until `resume`, as far as the driver can do that; resolves when weights may change. Idempotent. */
  pause(): Promise<void>;
  resume(): void;
  /** The trainer has named another version. */
  weightsChanged(): void;
  /** Where it would go on; groups that were begun and not handed over are part of it. */
  position(): CollectorPosition;
  /** When the driver is stopped. */
  close(): Promise<void>;
}

export interface CollectorWishes {
  /** Begins the ids of its rollouts. */
  readonly name: string;
  /** Whose its rollouts are. */
  readonly caller: Caller;
  readonly from: CollectorPosition;
  readonly weightVersion: () => number | null;
}

/** CONFIG_INVALID for what cannot be used, DATASET_EMPTY; nothing is left behind then. */
export type OpenCollector = (
  request: CollectionRequest,
  wishes: CollectorWishes,
) => Promise<OpenedCollector>;
