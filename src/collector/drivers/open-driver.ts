/** Drivers by name. */
import type { CollectionDriver } from '../../wire/api/collection.ts';
import type { CollectorParts } from '../collector-parts.ts';
import { AsynchronousDriver } from './asynchronous-driver.ts';
import type { AsynchronousOptions } from './asynchronous-options.ts';
import type { CollectorDriver } from './driver.ts';
import { OneStepAheadDriver } from './one-step-ahead-driver.ts';
import { SynchronousDriver } from './synchronous-driver.ts';

export interface DriverChoice {
  readonly driver: CollectionDriver;
  /** Of the asynchronous driver. */
  readonly asynchronous: AsynchronousOptions;
  /** Begins the ids of its rollouts. */
  readonly runName: string;
}

/** A driver and what a trainer does around a change of its weights. */
export interface OpenDriver {
  readonly driver: CollectorDriver;
  /** Nothing is started until `resume`, as far as the driver can do that; resolves when weights may change. Idempotent. */
  pause(): Promise<void>;
  resume(): void;
  /** The trainer has named another version. */
  weightsChanged(): void;
}

/** CONFIG_INVALID for options of the asynchronous driver that are wrong. */
export function openDriver(choice: DriverChoice, parts: CollectorParts): OpenDriver {
  const { runName } = choice;
  const nothing = (): void => undefined;
  switch (choice.driver) {
    case 'synchronous': {
      const driver = new SynchronousDriver(parts, runName);
      const pause = (): Promise<void> => Promise.resolve();
      return { driver, pause, resume: nothing, weightsChanged: nothing };
    }
    case 'one-step-ahead': {
      const driver = new OneStepAheadDriver(parts, runName);
      return { driver, pause: () => driver.settled(), resume: nothing, weightsChanged: nothing };
    }
    case 'asynchronous': {
      const driver = new AsynchronousDriver(parts, runName, choice.asynchronous);
      return {
        driver,
        pause: () => {
          driver.pause();
          return Promise.resolve();
        },
        resume: () => driver.resume(),
        weightsChanged: () => driver.weightsChanged(),
      };
    }
  }
}
