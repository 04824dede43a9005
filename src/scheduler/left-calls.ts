/**
 * Captured calls of rollouts that had ended when an earlier life of the server was killed, before they were in the archive: they go there now, with what is known of the
 * end where the archive says nothing of it.
 */
import { messageOf } from '../core/errors.ts';
import type { StoredRollout } from '../store/rollout-store.ts';
import { rolloutRequestSchema } from '../wire/rollout/rollout-request.ts';
import { isTerminal } from '../wire/rollout/rollout-state.ts';
import {
  archiveCalls,
  archiveWithCalls,
  forgetCalls,
  rolloutFacts,
  secretsOf,
} from './archiving.ts';
import type { SchedulerCore } from './scheduler-core.ts';

/** Whose they are, of rollouts that nobody ends any more: whoever ends those that are `alive` archives their calls. Before anything is started. Never rejects. */
export async function leftCalls(
  alive: ReadonlySet<string>,
  { parts: { gateway, logger } }: SchedulerCore,
): Promise<readonly string[]> {
  try {
    return ((await gateway.left?.()) ?? []).filter((id) => !alive.has(id));
  } catch (error) {
    logger.log('warn', 'captured model calls of an earlier life were not found', {
      error: messageOf(error),
    });
    return [];
  }
}

/** Never rejects: what cannot be archived stays until its rollout is forgotten. */
export async function archiveLeftCalls(
  left: readonly string[],
  core: SchedulerCore,
): Promise<void> {
  const { store, logger } = core.parts;
  for (const rolloutId of left)
    try {
      const stored = await store.rollout(rolloutId);
      if (stored === null || stored.isTombstone) await forgetCalls(rolloutId, core.parts);
      else if (isTerminal(stored.state)) await archiveLeft(stored, core);
    } catch (error) {
      logger.log('warn', 'captured model calls of an earlier life were not archived', {
        ...{ rolloutId, error: messageOf(error) },
      });
    }
}

async function archiveLeft(
  stored: StoredRollout,
  { parts, options }: SchedulerCore,
): Promise<void> {
  const { id, outcome } = stored;
  const request = rolloutRequestSchema.parse(JSON.parse(stored.request));
  const secrets = secretsOf(request);
  const isArchived = (await parts.archive.document(id, 'outcome.json')) !== null;
  if (isArchived || outcome === null) {
    await archiveCalls(id, secrets, parts);
    return;
  }
  const facts = rolloutFacts({ id, request, outcome, version: options.version }, []);
  await archiveWithCalls(facts, { files: [], secrets }, parts);
}
