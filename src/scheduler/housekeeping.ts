/** Keeps the store and the archive within their limits, at the start and from time to time. */
import { messageOf } from '../core/errors.ts';
import type { SchedulerOptions, SchedulerParts } from './scheduler-parts.ts';

type Parts = Pick<SchedulerParts, 'store' | 'archive' | 'clock' | 'logger'> & {
  readonly backend: Pick<SchedulerParts['backend'], 'forget'>;
  readonly gateway: Pick<SchedulerParts['gateway'], 'forget'>;
};

/** Until `signal` fires. Never rejects. */
export async function keepHouse(
  retention: SchedulerOptions['retention'],
  parts: Parts,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await tidy(retention, parts);
    await parts.clock.sleep(retention.everyMs, signal).catch(() => undefined);
  }
}

export async function tidy(
  retention: SchedulerOptions['retention'],
  { store, archive, backend, gateway, clock, logger }: Parts,
): Promise<void> {
  try {
    const { rollouts, events, removedIds } = await store.prune(retention, clock.now());
    // The store has forgotten them all: one that cannot be removed must not keep the others.
    for (const rolloutId of removedIds) {
      await gateway.forget(rolloutId).catch(() => undefined);
      await archive.remove(rolloutId).catch((error: unknown) =>
        logger.log('warn', 'the archive of a forgotten rollout could not be removed', {
          ...{ rolloutId, error: messageOf(error) },
        }),
      );
    }
    if (removedIds.length > 0)
      await backend.forget?.(removedIds).catch((error: unknown) =>
        logger.log('warn', 'what trials of forgotten rollouts left could not be removed', {
          ...{ rollouts: removedIds.length, error: messageOf(error) },
        }),
      );
    const trimmed = await archive.trim(retention.archiveBytes);
    if (rollouts + events + trimmed.length > 0)
      logger.log('info', 'what is older or more than is kept was removed', {
        ...{ rollouts, events, trimmed: trimmed.length },
      });
  } catch (error) {
    logger.log('warn', 'old rollouts could not be removed', { error: messageOf(error) });
  }
}
