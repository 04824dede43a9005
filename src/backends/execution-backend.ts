/**
 * The backend port: how a rollout is executed. One folder per backend (`null/`, `local/`, `native/`), named in `registry.ts`, one conformance suite
 * (`tests/conformance/backend-suite.ts`). A backend knows no HTTP, no callbacks and no store: it runs one rollout and says how it ended. A failed
 * rollout is a value; only a defect rejects.
 */
import type { CallbackStatus, ErrorCategory, Sample } from '../wire/rollout/callback-payloads.ts';
import type { KeptFile } from '../wire/rollout/kept-file.ts';
import type { ModelRoute } from '../wire/rollout/model-route.ts';
import type { ProcessView } from '../wire/rollout/process-view.ts';
import type { RolloutProgress } from '../wire/rollout/progress.ts';
import type { Outcome } from '../wire/outcome.ts';

export interface ExecutionRequest {
  readonly id: string;
  /** `initial_messages`, unmodified. */
  readonly prompt: readonly Readonly<Record<string, unknown>>[];
  readonly label: string | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
  /** As the controller asked; null = no limit of its own. Zero and less: already over. */
  readonly agentTimeoutMs: number | null;
  readonly graderTimeoutMs: number | null;
  /** From acceptance until now. Only the local backend charges it to the agent, as its protocol says. */
  readonly queuedMs: number;
  /** null = the controller named no model (an empty URL): an agent that needs one is refused, never sent elsewhere. */
  readonly route: ModelRoute | null;
  /** Whether anybody wants a grade: a grader callback, or a backend that captures final results. */
  readonly wantsGrade: boolean;
  /** Known secrets of this rollout: none may reach a file, a log or a message. */
  readonly secrets: readonly string[];
}

/** What the backend tells while it works. */
export interface ExecutionHooks {
  /**
   * Called before the agent's first action, and awaited: when it resolves the fact is durable. A rollout that had not begun may run again after a
   * crash of the server; one that had ends as a failure. Rejects when the rollout must not go on.
   */
  agentBegins(): Promise<void>;
  /** Cheap; as often as something changes. */
  progress(progress: RolloutProgress): void;
  /**
   * The agent's outcome is known; called at most once, before grading. Resolves when it is durable and its callback is on its way. Not called when
   * there is no grading afterwards: the final result says the same.
   */
  workflowCompleted(result: ExecutionResult): Promise<void>;
}

export interface ExecutionResult {
  readonly status: CallbackStatus;
  readonly sample: Sample | null;
  readonly errMessage: string | null;
  readonly errCategory: ErrorCategory | null;
  readonly outcome: Outcome;
  /** JSON object for `extra_fields` and `diagnostics.json`; null = none. */
  readonly diagnostics: Readonly<Record<string, unknown>> | null;
  /** What the agent says of its run, in its own words; absent = nothing. In no callback. */
  readonly agentMetadata?: Readonly<Record<string, unknown>>;
  /** Native ATIF document; null = the archive makes one of the sample's messages, if any. Never on the wire. */
  readonly trajectory: Readonly<Record<string, unknown>> | null;
  readonly files: readonly KeptFile[];
}

/** What an abort ended, as far as the backend is concerned. */
export interface AbortReceipt {
  readonly stage: string;
  readonly processesKilled: number;
  readonly confirmedGone: readonly string[];
  readonly isComplete: boolean;
  readonly problem: string | null;
}

/** What became of the files of a result, all of which are on disk when it is said. */
export interface ArchivedFiles {
  readonly isComplete: boolean;
}

/** One rollout that a backend executes. */
export interface Execution {
  /** The final result: the grade where there is one, else the workflow's result. After `abort` it resolves or rejects, and nobody looks at it. */
  readonly result: Promise<ExecutionResult>;
  /**
   * Frees what `result` still holds on disk, after the archive took it: trial folders of successful trials. Failed ones stay, and so do those of which
   * the archive could not take everything (`isComplete` false). Absent: there was nothing to take. After an abort it resolves when nothing of the
   * execution is at work any more: its place is free then. Idempotent.
   */
  release(archived?: ArchivedFiles): Promise<void>;
  /** Ends it in any phase, within 2 s as a rule, and says what is gone. Idempotent: later calls share the receipt. */
  abort(reason: Error): Promise<AbortReceipt>;
}

/** A look at a live rollout from outside, for the hang finder. */
export interface ExecutionProbe {
  /** Sandboxes that are up, newest last. */
  readonly sandboxes: readonly {
    readonly name: string;
    /** null = they cannot be looked at. */
    readonly processes: readonly ProcessView[] | null;
  }[];
}

export interface ExecutionBackend {
  /** `null`, `local`, `native`. */
  readonly kind: string;
  /** It computes the reward itself: it grades although no grader callback is wanted, for the archive. */
  readonly capturesFinalResult: boolean;
  /** Fields of `/health`, before the server adds its own. Cheap: called for every request. */
  health(): Readonly<Record<string, unknown>>;
  /** Checks and prepares what every rollout needs; before the server listens. Throws what stands in the way, typed. */
  start(signal: AbortSignal): Promise<void>;
  /** Never throws; returns at once. */
  execute(request: ExecutionRequest, hooks: ExecutionHooks): Execution;
  /** Looks at what the rollout runs now, changing nothing; null = it is not executing here. Absent where there is nothing to look at. Rejects only with the reason of `signal`. */
  probe?(id: string, signal: AbortSignal): Promise<ExecutionProbe | null>;
  /**
   * Removes from the disk what is left of rollouts that retention has forgotten, live ones of the same id left alone. Idempotent; an id without anything
   * is no mistake. Absent where rollouts leave nothing.
   */
  forget?(ids: readonly string[]): Promise<void>;
  /** Ends what is left and frees everything. Idempotent. */
  close(): Promise<void>;
}

/** Opens a backend by name; rejects with BACKEND_UNKNOWN, which lists the names. */
export type BackendResolver<Parts> = (name: string, parts: Parts) => Promise<ExecutionBackend>;
