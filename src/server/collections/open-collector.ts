import type { OpenDriver } from '../../collector/drivers/open-driver.ts';
import type { CollectorPosition } from '../../collector/group-source.ts';
import type { CollectionRequest } from '../../wire/api/collection.ts';
import type { Caller } from '../../scheduler/rollout-service.ts';

/** A driver and everything that it is made of. */
export interface OpenedCollector extends OpenDriver {
  readonly rows: number;
  readonly skippedLines: number;
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
