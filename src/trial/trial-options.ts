import type {
  AgentFactory,
  AgentOptions,
  AgentPrograms,
  AgentResolver,
  OpenRoute,
  RouteUpstream,
} from '../agents/agent.ts';
import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type {
  EnvironmentLayer,
  EnvironmentProvider,
  HostEndpoint,
} from '../environments/environment.ts';
import type { Task } from '../tasks/task.ts';
import type { TrialConfig } from '../wire/harbor/trial-config.ts';
import type { SkillLock, TaskLock } from '../wire/harbor/trial-lock.ts';
import type { TaskId } from '../wire/harbor/trial-result.ts';
import type { TrialObserver } from './trial-events.ts';

/** A skill folder on the host, to be brought into the sandbox. */
export interface Skill {
  readonly name: string;
  readonly dir: string;
  readonly lock: SkillLock;
}

/** What a trial's configuration resolves to. */
export interface TrialInputs {
  readonly task: Task;
  /** Row of `lock.json`. */
  readonly taskLock: TaskLock;
  /** `task_checksum` of `result.json`. */
  readonly checksum: string;
  /** Later names win; any order. */
  readonly skills: readonly Skill[];
}

export interface TrialRequest {
  /** `trial_name` is not empty; `trials_dir` is absolute. */
  readonly config: TrialConfig;
  /** As far as known before loading; the loaded task's own name replaces it. */
  readonly taskName: string;
  readonly taskId: TaskId;
  /** Name of the dataset; null = none. */
  readonly source: string | null;
  /** Loads task and skills. What it throws is recorded on this trial and hurts no other. */
  load(signal: AbortSignal): Promise<TrialInputs>;
  /** When the trial was queued; the time until `run` is queue time. */
  readonly queuedAt?: Date;
  /** An agent that no registry knows; else the one that `config` names. */
  readonly agent?: AgentFactory;
  /** What every sandbox of the trial sees of this host. CAPABILITY_UNSUPPORTED where the environment has no layers. */
  readonly layers?: readonly EnvironmentLayer[];
}

/** A route for one trial, and where its calls are kept: in a folder of the trial, without its secrets, from the end of the route on. */
export type TrialRouteOpener = (
  upstream: RouteUpstream,
  kept: { readonly dir: string; readonly secrets: readonly string[] },
) => Promise<OpenRoute>;

/** Limits of ours on waits that a task does not limit, in milliseconds. */
export interface TrialLimits {
  /** Over the whole trial; null = the sum of its parts, none when the agent has no limit. */
  readonly ceilingMs: number | null;
}

/** What the trials of one run share. */
export interface TrialParts {
  /** Journals, labels and limits on its own; chosen by `config.environment`. */
  readonly provider: EnvironmentProvider;
  readonly resolveAgent: AgentResolver;
  /** For agents that call a model from the host. */
  readonly openEngine: AgentOptions['openEngine'];
  readonly clock: Clock;
  readonly logger: Logger;
  /** Variables of the host, for templates and for masking. */
  readonly hostVariables: Readonly<Record<string, string | undefined>>;
  readonly storeId: string;
  readonly runId: string;
  readonly observe?: TrialObserver;
  /** Waits for a place in the agent's own pool and answers how to give it back. The wait is queue time, never the agent's. */
  readonly admitAgent?: (signal: AbortSignal) => Promise<() => void>;
  readonly limits?: Partial<TrialLimits>;
  /** Host file with CA certificates for the sandbox; null = none. */
  readonly extraCaBundle?: string | null;
  /** An address of the host that the sandboxes reach: the gateway that the agent's model is behind. */
  readonly hostEndpoint?: HostEndpoint | null;
  /** Programs of agents on this machine. */
  readonly programs?: AgentPrograms;
  /** For agents whose model no gateway stands before yet; not used with `hostEndpoint`. */
  readonly openRoute?: TrialRouteOpener;
}
