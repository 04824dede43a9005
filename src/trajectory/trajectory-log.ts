import type { AtifAgent, AtifFinalMetrics, AtifStep } from '../wire/atif/atif.ts';

/** What is known of a document before its first step. */
export interface TrajectoryHead {
  readonly sessionId: string;
  readonly trajectoryId: string | null;
  readonly agent: AtifAgent;
  readonly notes: string | null;
  readonly extra: Readonly<Record<string, unknown>> | null;
}

/** A step without its number. */
export type NewStep = Omit<AtifStep, 'step_id'>;

/** A trajectory being written: steps go to disk as they come, the document is whole after `checkpoint` and `close`. */
export interface TrajectoryLog {
  readonly stepCount: number;
  /**
   * Adds a step and answers its number. `sampledText` is the whole text that the step's ids stand for, where its fields do not show all of it: a
   * secret in there takes the ids out of the step as one in a field does.
   */
  append(step: NewStep, options?: { readonly sampledText?: string }): Promise<number>;
  /** Writes the document as it stands, by rename, when it has grown enough for the cost; otherwise does nothing. */
  checkpoint(finalMetrics: AtifFinalMetrics | null): Promise<void>;
  /** Writes the whole document and removes the spilled steps. Idempotent. Without a step no document is left. */
  close(end: {
    readonly finalMetrics: AtifFinalMetrics | null;
    readonly continuedTrajectoryRef?: string;
    readonly notes?: string;
  }): Promise<void>;
  /** Ends it without a document: the spilled steps stay as they are. Idempotent, as `close` is; the first of the two holds. */
  leave(): Promise<void>;
}

export interface TrajectoryLogOptions {
  /** Absolute path of the document; the steps are spilled beside it until it is closed. */
  readonly file: string;
  readonly head: TrajectoryHead;
  /** Replaced wherever they occur. */
  readonly secrets: readonly string[];
}
