import type { AgentPrograms, AgentResolver } from '../agents/agent.ts';
import type { HostVariables, Machine } from '../config/machine.ts';
import type { Clock } from '../core/clock.ts';
import type { LockPort } from '../core/lock.ts';
import type { EngineOpener } from '../engines/engine.ts';
import type { EnvironmentProvider } from '../environments/environment.ts';
import type { EnvironmentSettings } from '../environments/registry.ts';
import type { TaskSource } from '../jobs/task-source.ts';
import type { SkillSources } from '../tasks/references/skill-sources.ts';
import type { TrialParts, TrialRequest } from '../trial/trial-options.ts';
import type { Trial } from '../trial/trial.ts';

/** Finds an environment by name; rejects with ENVIRONMENT_UNKNOWN, which lists the names. */
export type ProviderResolver = (
  name: string,
  settings: EnvironmentSettings,
) => Promise<EnvironmentProvider>;

/** What these ports were composed of, as plain data: another thread makes its own of it. */
export interface Composition {
  readonly variables: HostVariables;
  readonly cwd: string;
}

/** Everything that the operations of this folder use and do not make themselves; `compose` builds the real ones. */
export interface AppPorts {
  /** null = a part was put in the place of another: everything stays in this thread. */
  readonly composition: Composition | null;
  readonly machine: Machine;
  /** Of this program. */
  readonly version: string;
  readonly clock: Clock;
  readonly locks: LockPort;
  readonly resolveProvider: ProviderResolver;
  /** Names that `resolveProvider` knows. */
  readonly environmentNames: readonly string[];
  readonly resolveAgent: AgentResolver;
  /** Programs of agents that are brought into sandboxes. */
  readonly programs: AgentPrograms;
  readonly openEngine: EngineOpener;
  readonly createTrial: (request: TrialRequest, parts: TrialParts) => Trial;
  readonly taskSource: TaskSource;
  readonly skillSources: Pick<SkillSources, 'locate'>;
}
