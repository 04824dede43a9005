import { z } from 'zod';
import { RolloutError } from '../../core/errors.ts';
import type { CompiledCollectorOptions } from '../options.ts';

const schema = z
  .strictObject({
    /** Complete groups that wait, and groups at work, together; null = twice the batch, and no less than what is started. */
    bufferGroups: z.int().min(1).nullable().default(null),
    /** How many versions behind the trainer's the oldest weights of a group may be; null = any. */
    maxStaleness: z.int().min(0).nullable().default(null),
    /** Groups beyond that: forgotten, or their rows come first again. */
    stale: z.enum(['discard', 'return']).default('discard'),
  })
  .prefault({});

export type AsynchronousOptions = NonNullable<z.input<typeof schema>>;
export type CompiledAsynchronousOptions = Readonly<
  Omit<z.output<typeof schema>, 'bufferGroups'> & { readonly bufferGroups: number }
>;

/** CONFIG_INVALID for what is wrong. */
export function compileAsynchronousOptions(
  options: AsynchronousOptions,
  { batchGroups, startGroups }: Pick<CompiledCollectorOptions, 'batchGroups' | 'startGroups'>,
): CompiledAsynchronousOptions {
  const parsed = schema.safeParse(options);
  const problem = parsed.success ? null : z.prettifyError(parsed.error);
  const bufferGroups = parsed.data?.bufferGroups ?? Math.max(2 * batchGroups, startGroups);
  const isSmall = bufferGroups < batchGroups;
  if (!parsed.success || isSmall)
    throw new RolloutError('CONFIG_INVALID', problem ?? 'bufferGroups is less than batchGroups', {
      phase: 'config',
      field: isSmall ? 'bufferGroups' : (parsed.error?.issues[0]?.path.join('.') ?? 'asynchronous'),
      remedy: 'Correct the options of the asynchronous driver.',
    });
  return Object.freeze({ ...parsed.data, bufferGroups });
}
