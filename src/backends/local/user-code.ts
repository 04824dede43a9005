/** What a user's module exports for the backend `local`. Both classes are made anew for every rollout. */

/** How the workflow reaches its model: an address of ours, and a key that dies with the rollout. */
export interface WorkflowModel {
  /** What `/chat/completions` is appended to. */
  readonly baseUrl: string;
  readonly apiKey: string;
}

export interface WorkflowContext<Config = unknown> {
  /** The messages of the request, unmodified. */
  readonly prompt: readonly Readonly<Record<string, unknown>>[];
  /** A copy for this rollout. */
  readonly config: Config;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** Folder for files that the archive keeps; null = it could not be made. */
  readonly artifactsDir: string | null;
  /** Fires at the deadline and when the rollout is cancelled. What does not stop within a moment is ended with its thread. */
  readonly signal: AbortSignal;
  /** null = the controller named no model. */
  readonly model: WorkflowModel | null;
}

export interface WorkflowOutput {
  /** null = there is no sample. */
  readonly messages?: readonly Readonly<Record<string, unknown>>[] | null;
  /** Finite numbers. */
  readonly metrics?: Readonly<Record<string, number>>;
  /** The author's own; nobody reads it. */
  readonly info?: Readonly<Record<string, unknown>>;
}

/** Nothing, a list of messages, or an output object; anything else fails the rollout. */
export type WorkflowAnswer =
  WorkflowOutput | readonly Readonly<Record<string, unknown>>[] | undefined;

export interface AgentWorkflow<Config = unknown> {
  run(ctx: WorkflowContext<Config>): Promise<WorkflowAnswer>;
}

export type AgentWorkflowClass<Config = unknown> = new (config: Config) => AgentWorkflow<Config>;

/** What the grader changes in it is the result. */
export interface GraderSample {
  messages: Readonly<Record<string, unknown>>[];
  label: string | null;
  /** Finite; anything else is refused when it is assigned. */
  reward: number | null;
  /** The sample stays out of training; it needs no reward then. */
  removeSample: boolean;
  metrics: Record<string, unknown>;
  extraFields: Record<string, unknown>;
}

export interface GraderContext<Config = unknown> {
  readonly label: string | null;
  readonly sample: GraderSample;
  readonly config: Config;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  readonly artifactsDir: string | null;
  readonly signal: AbortSignal;
  /** Of the rollout, for a model as a judge; null = the controller named none. */
  readonly model: WorkflowModel | null;
  /** Throws a RangeError for a number that is not finite. */
  readonly setReward: (reward: number) => void;
}

export interface Grader<Config = unknown> {
  /** What it answers is not looked at. */
  grade(ctx: GraderContext<Config>): Promise<unknown>;
}

export type GraderClass<Config = unknown> = new (config: Config) => Grader<Config>;
