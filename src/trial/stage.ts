import type { Agent } from '../agents/agent.ts';
import type { Phase } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { Environment, ProcessSnapshot } from '../environments/environment.ts';
import type { DeadlineScope, TrialWork } from './deadline-scope.ts';
import type { Sandboxes } from './sandboxes.ts';
import type { RoundFolders, TrialFolder } from './trial-folder.ts';
import type { TrialParts } from './trial-options.ts';
import type { RoundPlan, TrialPlan } from './trial-plan.ts';
import type { RoundRecord, TrialRecord } from './trial-record.ts';

/** What every stage of a trial works with. */
export interface TrialRun {
  readonly plan: TrialPlan;
  readonly parts: TrialParts;
  readonly folder: TrialFolder;
  readonly record: TrialRecord;
  readonly agent: Agent;
  readonly sandboxes: Sandboxes;
  /** The sandbox that the agent works in. */
  readonly environment: Environment;
  readonly work: TrialWork;
  /** Root of the deadline tree. */
  readonly deadline: DeadlineScope;
  readonly logger: Logger;
  /** For people: one line of a slow stage. */
  readonly progress: (line: string) => void;
  readonly state: SandboxState;
}

/** What stages find out about the agent's sandbox for later ones. */
export interface SandboxState {
  /** Processes that belong to the environment itself; taken before the agent is set up. */
  baseProcesses: ProcessSnapshot | null;
  /** It has started: there is something to collect. */
  isEnvironmentUp: boolean;
}

/** What the stages of a round work with as well. */
export interface RoundRun extends TrialRun {
  readonly round: RoundPlan;
  readonly outcome: RoundRecord;
  readonly roundDeadline: DeadlineScope;
  /** Host folders of this round while it runs. */
  readonly folders: RoundFolders;
  /** Processes to keep when the agent is stopped. */
  keptProcesses: ProcessSnapshot | null;
}

/** One thing a trial does, under one name. Stages run in the order of their list and own their limits. */
export interface Stage<R extends TrialRun = TrialRun> {
  /** For people, as in "running agent". */
  readonly name: string;
  readonly phase: Phase;
  /** Runs although an earlier stage failed, to save what there is. */
  readonly isSalvage?: boolean;
  /** Whether there is anything to do; absent = always. */
  readonly applies?: (run: R) => boolean;
  readonly run: (run: R, signal: AbortSignal) => Promise<void>;
}
