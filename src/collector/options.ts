/** What a collector does, compiled: unknown keys are refused, all problems are reported with their paths, and nothing is optional inside. */
import { z } from 'zod';
import { RolloutError } from '../core/errors.ts';

const count = z.int().min(1);
const ms = z.number().min(0);

export const collectorOptionsSchema = z
  .strictObject({
    /** Members of a group. */
    groupSize: count.default(8),
    /** Groups of a batch. */
    batchGroups: count.default(32),
    /** Groups that are started for a batch; more than `batchGroups` = oversampling. null = as many as the batch. */
    startGroups: count.nullable().default(null),
    /** `sample`: a new group may start before any has ended, as soon as enough members have. */
    granularity: z.enum(['group', 'sample']).default('group'),
    /** When groups were dropped: `needed` starts what is missing times the oversampling, `whole` starts `startGroups` again. */
    topUp: z.enum(['needed', 'whole']).default('needed'),
    /** Rollouts that run at once; the others wait for their place. */
    maxConcurrent: count.default(512),
    /** Complete groups beyond the batch: kept for the next one, returned to be rolled out anew, or discarded. */
    surplus: z.enum(['keep', 'return', 'discard']).default('keep'),
    /**
     * Groups that the abort cut off: `discard` forgets them; `return` serves their rows first next time; `resume` does so with what their members had sampled;
     * `resume-masked` takes that out of the loss, as it is of older weights.
     */
    unfinished: z.enum(['discard', 'return', 'resume', 'resume-masked']).default('discard'),
    /** Attempts for one place of a group before the group is given up. */
    maxAttempts: count.default(4),
    /** Pause before the second attempt; it doubles for each further one. */
    refillPauseMs: ms.default(200),
    /** How often a row's groups may be lost before the row is given up. */
    maxRowLosses: count.default(2),
    /** Groups in a row that come to nothing before `collect` rejects. */
    maxLostGroups: count.default(64),
    /** For sampling that can be repeated: every place of a group has its own; null = none is asked for. */
    samplingSeed: z.int().nullable().default(null),
    /** Limit of one call of a reward hook or filter. */
    hookMs: ms.default(600_000),
    abort: z
      .strictObject({
        /** Limit of one request to an engine. */
        engineMs: ms.default(2_000),
        /** Passes over the engines after the first one, and how long all of them may take. */
        passes: z.int().min(0).default(20),
        passesMs: ms.default(10_000),
        pauseMs: ms.default(100),
        /** Limit of the agent's hook. */
        hookMs: ms.default(10_000),
        /** How long rollouts have to end by themselves, before they are told, and then until they are abandoned. */
        drainMs: ms.default(30_000),
        settleMs: ms.default(5_000),
      })
      .prefault({}),
  })
  .refine(({ startGroups, batchGroups }) => startGroups === null || startGroups >= batchGroups, {
    error: 'startGroups is less than batchGroups',
    path: ['startGroups'],
  })
  .prefault({});

export type CollectorOptions = NonNullable<z.input<typeof collectorOptionsSchema>>;
export type CompiledCollectorOptions = Readonly<
  Omit<z.output<typeof collectorOptionsSchema>, 'startGroups'> & { readonly startGroups: number }
>;

/** CONFIG_INVALID for what is wrong. */
export function compileCollectorOptions(options: CollectorOptions): CompiledCollectorOptions {
  const parsed = collectorOptionsSchema.safeParse(options);
  if (!parsed.success) {
    const [first] = parsed.error.issues;
    throw new RolloutError('CONFIG_INVALID', z.prettifyError(parsed.error), {
      phase: 'config',
      field: first?.path.join('.') ?? 'collector',
      remedy: 'Correct the options of the collector.',
    });
  }
  const { startGroups, ...rest } = parsed.data;
  return Object.freeze({ ...rest, startGroups: startGroups ?? rest.batchGroups });
}
