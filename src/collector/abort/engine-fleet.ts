/** The engines that an abort has to reach, wherever they are found: behind a router, or listed. */
import type { Engine } from '../../engines/engine.ts';

export interface EngineFleet {
  /**
   * The engines of this moment. Rejects where they cannot be found; the abort reports that and goes on with the agents. Engines are borrowed: the fleet opens
   * each once, and closes all.
   */
  discover(signal: AbortSignal): Promise<readonly FleetEngine[]>;
  /** Idempotent. */
  close(): Promise<void>;
}

export type FleetEngine = Pick<Engine, 'url' | 'capabilities' | 'abortAll' | 'load'>;
