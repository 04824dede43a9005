/** What a collection gives out, a line of JSON each: groups as they are handed over, then what their batch cost. */

export interface CollectedSampleLine {
  /** Prompt, then everything behind it. */
  readonly tokens: readonly number[];
  readonly prompt_length: number;
  /** One for each token behind the prompt. */
  readonly loss_mask: readonly (0 | 1)[];
  /** One for each token behind the prompt; null = the engine said none. */
  readonly log_probs: readonly number[] | null;
  /** Share of its rollout. */
  readonly weight: number;
  readonly is_truncated: boolean;
  /** Positions in `tokens`, `end` exclusive. */
  readonly spans: readonly {
    readonly begin: number;
    readonly end: number;
    readonly trained: boolean;
    readonly weight_version: string | null;
  }[];
}

export interface CollectedMemberLine {
  readonly rollout_id: string;
  readonly member: number;
  readonly status: string;
  readonly cause: string | null;
  readonly reward: number | null;
  /** Out of the loss and of the group's baseline. */
  readonly is_masked: boolean;
  /** In the baseline, and without loss. */
  readonly is_removed: boolean;
  readonly attempts: number;
  readonly duration_ms: number;
  readonly samples: readonly CollectedSampleLine[];
}

export interface CollectedGroupLine {
  readonly type: 'group';
  /** From 0. */
  readonly batch: number;
  readonly group: number;
  readonly row: number;
  readonly epoch: number;
  readonly prompt: readonly unknown[];
  readonly label: string | null;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The trainer's version when its oldest member was started; null = none was named. */
  readonly oldest_version: number | null;
  readonly members: readonly CollectedMemberLine[];
}

/** Follows its groups as soon as the rest of the batch is gone. */
export interface CollectedBatchLine {
  readonly type: 'batch';
  readonly batch: number;
  readonly groups: number;
  readonly started: { readonly groups: number; readonly rollouts: number };
  /** Attempts that were lost and made anew. */
  readonly refilled: number;
  readonly losses: Readonly<Record<string, number>>;
  /** Groups that did not make it, by reason. */
  readonly dropped: Readonly<Record<string, number>>;
  /** Groups that a later batch gets. */
  readonly returned: number;
  readonly collect_ms: number;
  readonly mean_reward: number | null;
  /** null = there was nothing to end. */
  readonly abort: {
    readonly rollouts: number;
    readonly by: Readonly<Record<string, number>>;
    readonly engines: number;
    readonly hook: string;
    readonly duration_ms: number;
    readonly is_complete: boolean;
    readonly problems: readonly string[];
  } | null;
}
