/** What backends that run trials use of the run that owns the sandboxes, and of the task sources; `app/` makes both. */
import type { HostEndpoint } from '../../environments/environment.ts';
import type { Skill, TrialInputs, TrialRequest } from '../../trial/trial-options.ts';
import type { TrialObserver } from '../../trial/trial-events.ts';
import type { Trial } from '../../trial/trial.ts';
import type { EnvironmentConfig } from '../../wire/harbor/run-config.ts';
import type { TaskEntry } from '../../wire/harbor/task-entry.ts';
import type { TaskId } from '../../wire/harbor/trial-result.ts';

export interface TrialHooks {
  readonly observe: TrialObserver;
  /** Awaited before every run of the agent; what it resolves with is called when that run is over. A rejection ends the trial. */
  readonly admitAgent: (signal: AbortSignal) => Promise<() => void>;
  /** What the sandbox reaches beyond its network policy: the gateway, for an agent whose calls come from inside. */
  readonly hostEndpoint?: HostEndpoint | null;
}

/** Trials of one environment, whose sandboxes are journalled. Disposing ends what they share. */
export interface NativeTrials extends AsyncDisposable {
  /** Sandboxes of this environment can reach an address of the host. */
  readonly hasHostEndpoint: boolean;
  createTrial(request: TrialRequest, hooks: TrialHooks): Trial;
}

/** A task that was found; its folder may still be wrong. */
export interface NativeTask {
  /** Pinned to what was found. */
  readonly entry: TaskEntry;
  readonly name: string;
  readonly taskId: TaskId;
  load(signal: AbortSignal): Promise<Omit<TrialInputs, 'skills'>>;
}

export interface NativePorts {
  /** What a task that is prepared is called where its reference says nothing; null or absent = by its reference. */
  readonly labelOf?: (entry: TaskEntry) => string | null;
  /** false = what the log says of a binding at the start is not for who configured this one. */
  readonly warnsOfBinding?: boolean;
  /**
   * Called once, by `start`; `signal` ends only the opening. The code of `agent` is loaded, so that no trial waits for it. ENVIRONMENT_UNKNOWN,
   * ENVIRONMENT_UNAVAILABLE, JOURNAL_FAILED, AGENT_UNKNOWN.
   */
  openTrials(
    options: {
      readonly environment: EnvironmentConfig;
      readonly allowUnsandboxed: boolean;
      readonly agent?: string;
    },
    signal: AbortSignal,
  ): Promise<NativeTrials>;
  /** Resolves a reference; rejects, or answers a task whose `load` rejects, with what is wrong. `warnings` never hold an address or a credential. */
  findTask(
    entry: TaskEntry,
    signal: AbortSignal,
  ): Promise<{ readonly task: NativeTask; readonly warnings: readonly string[] }>;
  /** Follows the sources of `agent.skills`. REFERENCE_INVALID, and for repositories GIT_FAILED, ARCHIVE_UNSAFE, LOCK_TIMEOUT. */
  loadSkills(sources: readonly string[], signal: AbortSignal): Promise<readonly Skill[]>;
}
