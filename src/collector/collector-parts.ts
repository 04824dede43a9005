/** What the drivers are made of: ports by constructor. */
import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { AbortHookLookup } from './abort/abort-hook.ts';
import type { EngineFleet } from './abort/engine-fleet.ts';
import type { CausePolicy } from './cause-policy.ts';
import type { CollectorObserver } from './events.ts';
import type { GroupSource } from './group-source.ts';
import type { CollectorHooks } from './hooks.ts';
import type { CompiledCollectorOptions } from './options.ts';
import type { RolloutPort } from './rollout-port.ts';

export interface CollectorParts {
  readonly options: CompiledCollectorOptions;
  readonly source: GroupSource;
  readonly rollouts: RolloutPort;
  /** null = no engines are to be aborted. */
  readonly fleet: EngineFleet | null;
  /** null = no agent plugin: nothing is looked for. */
  readonly findHook: AbortHookLookup | null;
  readonly hooks: CollectorHooks;
  readonly causes: CausePolicy;
  /** The trainer's version of the weights; null = it has named none. */
  readonly weightVersion: () => number | null;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly observe: CollectorObserver;
}
