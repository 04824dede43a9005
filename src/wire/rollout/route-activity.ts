/** What is captured of a rollout's model calls. */
export interface CaptureActivity {
  /** Sent so far. */
  readonly calls: number;
  /** Why nothing more is kept; null = all is. */
  readonly problem: { readonly code: string; readonly message: string } | null;
}

/** What a rollout's model calls do at this moment. */
export interface RouteActivity {
  readonly callsRunning: number;
  readonly callsDone: number;
  /** Of the call that has waited longest for its next byte; null = none runs. */
  readonly waiting: {
    /** When that call began. */
    readonly since: Date;
    /** Bytes of the answer that came; 0 = silent so far. */
    readonly bytes: number;
    readonly lastByteAt: Date | null;
  } | null;
  readonly lastCallEndedAt: Date | null;
  /** The latest answer that was no success, since the latest success: status and what it said (without secrets); status null = no connection. */
  readonly refusal: {
    readonly status: number | null;
    readonly message: string;
    readonly at: Date;
    /** In a row. */
    readonly count: number;
  } | null;
  /** The budget that is used up, once a call was refused for it. */
  readonly spent: {
    readonly limit: 'max_requests' | 'max_turns' | 'max_sampled_tokens' | 'max_call_tokens';
    readonly max: number;
    /** More than `max` where calls under way had to be finished. */
    readonly used: number;
    readonly refused: number;
    /** The first of them. */
    readonly at: Date;
  } | null;
  /** null = calls are not captured. */
  readonly capture: CaptureActivity | null;
}
