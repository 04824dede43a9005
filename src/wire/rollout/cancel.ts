/** `POST /rollout/cancel`: exactly one selector. */
import { z } from 'zod';
import { laxBoolean } from '../harbor/lax.ts';

export type CancelSelector =
  | { readonly kind: 'ids'; readonly ids: readonly string[] }
  | { readonly kind: 'prefix'; readonly prefix: string }
  | { readonly kind: 'all' };

export type CancelDisposition = 'cancelled_queued' | 'cancelled_running' | 'not_found';

/** Every id that is not known leaves a tombstone: one request cannot leave any number of them. */
const maxIds = 10_000;

export const cancelRequestSchema = z.object({
  ids: z.array(z.string()).max(maxIds).nullish().default(null),
  prefix: z.string().nullish().default(null),
  all: laxBoolean.meta({ type: 'boolean' }).default(false),
});

export type CancelRequest = z.output<typeof cancelRequestSchema>;

/** What is answered to none or several. */
export const selectorRule = 'pass exactly one selector: ids, prefix, or all';

/** null = none or several. */
export function selectorOf({ ids, prefix, all }: CancelRequest): CancelSelector | null {
  const selectors: CancelSelector[] = [];
  if (ids !== null) selectors.push({ kind: 'ids', ids: [...new Set(ids)] });
  if (prefix !== null) selectors.push({ kind: 'prefix', prefix });
  if (all) selectors.push({ kind: 'all' });
  const [selector = null] = selectors;
  return selectors.length === 1 ? selector : null;
}
