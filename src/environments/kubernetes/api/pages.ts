/** Lists in pages: the API server holds each list of a large cluster whole in memory otherwise. */
import { z } from 'zod';
import type { ApiClient } from './api-client.ts';

const pageSize = 500;

const page = z.object({
  metadata: z.object({
    resourceVersion: z.string().default(''),
    continue: z.string().nullish(),
  }),
  items: z.array(z.unknown()).nullish(),
});

/** All items, and the version of the list that they are of. */
export async function listAll(
  client: ApiClient,
  { path, labelSelector }: { readonly path: string; readonly labelSelector: string },
  signal: AbortSignal,
): Promise<{ readonly items: readonly unknown[]; readonly resourceVersion: string }> {
  const items: unknown[] = [];
  let next: string | undefined;
  for (;;) {
    const query = { labelSelector, limit: pageSize, continue: next };
    const { metadata, ...rest } = page.parse(
      await client.json({ method: 'GET', path, query, signal }),
    );
    items.push(...(rest.items ?? []));
    next = metadata.continue === '' ? undefined : (metadata.continue ?? undefined);
    if (next === undefined) return { items, resourceVersion: metadata.resourceVersion };
  }
}
