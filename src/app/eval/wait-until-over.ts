import { request } from 'undici';
import { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { EvalServer } from './eval-server.ts';

const lookMs = 500;
const longestMs = 120_000;
const statusDocument = z.object({ status: z.string() });
const live = new Set(['queued', 'running', 'grading']);

/** Waits for rollouts that were cancelled at a server that runs on; not for ever. Never rejects. */
export async function waitUntilOver(
  ids: readonly string[],
  { server, clock }: { readonly server: EvalServer; readonly clock: Clock },
): Promise<void> {
  using link = new LinkedAbort([], { ms: longestMs, reason: () => new Error('not over yet') });
  const { signal } = link;
  try {
    for (const id of ids)
      while (await isLive(id, server, signal)) await clock.sleep(lookMs, signal);
  } catch {
    // Gone, or too slow: either way there is nothing to wait for.
  }
}

async function isLive(id: string, { url, key }: EvalServer, signal: AbortSignal): Promise<boolean> {
  const answer = await request(`${url}/rollout/${encodeURIComponent(id)}/status`, {
    headers: key === null ? {} : { authorization: `Bearer ${key}` },
    signal,
  });
  const found = statusDocument.safeParse(JSON.parse(await answer.body.text()));
  return found.success && live.has(found.data.status);
}
