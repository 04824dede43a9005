/** What the server and the worker of a rollout say to each other; plain values only. */
import type { ThreadOptions } from './local-options.ts';
import type { WorkflowModel } from './user-code.ts';

/** `workerData` of a thread; `port` carries the messages, because the thread's own belongs to the user's code. */
export interface ThreadSettings extends Pick<ThreadOptions, 'workflow' | 'grader'> {
  readonly port: unknown;
}

export interface WorkflowOrder {
  readonly kind: 'workflow';
  readonly rolloutId: string;
  readonly config: unknown;
  readonly prompt: readonly unknown[];
  readonly metadata: unknown;
  readonly artifactsDir: string | null;
  readonly model: WorkflowModel | null;
}

export interface GradeOrder {
  readonly kind: 'grade';
  readonly rolloutId: string;
  readonly config: unknown;
  readonly label: string | null;
  readonly metadata: unknown;
  readonly artifactsDir: string | null;
  readonly model: WorkflowModel | null;
  /** JSON of a {@link ThreadSample}. */
  readonly sample: string;
}

export type ThreadOrder = WorkflowOrder | GradeOrder;

export type ToThread =
  | { readonly kind: 'run'; readonly run: number; readonly order: ThreadOrder }
  | { readonly kind: 'cancel'; readonly run: number; readonly reason: string };

export interface ThreadSample {
  readonly messages: readonly Readonly<Record<string, unknown>>[];
  /** For the archive; absent = the messages, null = none is kept. */
  readonly trajectoryMessages?: readonly Readonly<Record<string, unknown>>[] | null;
  readonly label: string | null;
  readonly reward: number | null;
  readonly isRemoved: boolean;
  readonly metrics: Readonly<Record<string, unknown>>;
  readonly extraFields: Readonly<Record<string, unknown>>;
}

/** What the user's code threw, or what is wrong with its answer. */
export interface ThreadFailure {
  readonly kind: 'thrown' | 'answer';
  readonly category: 'timeout' | 'validation_error' | 'agent_error';
  readonly message: string;
}

export interface ThreadReport {
  readonly run: number;
  /** By the thread's own clock, from taking the order to having the answer. */
  readonly elapsedMs: number;
  /** Its signal had fired by then: whatever the answer is, it comes too late. */
  readonly wasCancelled: boolean;
  readonly failure: ThreadFailure | null;
  /** JSON of a {@link ThreadSample}; null = none. */
  readonly sample: string | null;
  /** Nothing of this run is still at work in the thread: it can serve another. */
  readonly isIdle: boolean;
}

export type FromThread =
  | { readonly kind: 'ready' }
  /** The modules cannot be used. */
  | { readonly kind: 'broken'; readonly message: string }
  | { readonly kind: 'ended'; readonly report: ThreadReport };
