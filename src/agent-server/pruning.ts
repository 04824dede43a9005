/** Removes what dead runs of this program left on the machine. What is somebody else's is never touched, however old: the owner is in the journal and on the labels. */
import type { Clock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type { FlushAllReply } from '../wire/agent-server/admin.ts';

/** Names of the sandboxes that were removed; rejects when it could not be looked for them. */
export type Reclaim = () => Promise<readonly string[]>;

export interface PruningParts {
  readonly reclaim: Reclaim;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Until `signal` fires. Never rejects. */
export async function keepPruning(
  intervalMs: number,
  { reclaim, clock, logger }: PruningParts,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    try {
      await clock.sleep(intervalMs, signal);
    } catch {
      return;
    }
    await reclaim().catch((error: unknown) => {
      logger.log('warn', 'nothing was pruned', { error: messageOf(error) });
    });
  }
}

const goesAlong = 'go with their sandboxes';

export async function pruneText(reclaim: Reclaim): Promise<NonNullable<FlushAllReply['prune']>> {
  const containers = await reclaim().then(
    (removed) => (removed.length === 0 ? 'nothing was left' : `removed: ${removed.join(', ')}`),
    (error: unknown) => `error: ${messageOf(error)}`,
  );
  return { containers: containers.slice(0, 200), volumes: goesAlong, networks: goesAlong };
}
