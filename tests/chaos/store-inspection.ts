import { systemClock } from '../../src/core/clock.ts';
import { never } from '../../src/core/linked-abort.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { FileLocks } from '../../src/store/file/file-lock.ts';
import { SqliteRolloutStore } from '../../src/store/sqlite/sqlite-rollout-store.ts';
import type { RolloutEvidence } from './rollout-evidence.ts';

/** What is wrong in the store of a server that has ended: everything must have come to its end, and the log of events must tell it without a gap. */
export async function inspectStore(
  dataDir: string,
  evidence: readonly RolloutEvidence[],
): Promise<readonly string[]> {
  const store = await SqliteRolloutStore.open(dataDir, {
    clock: systemClock,
    logger: silentLogger,
    locks: new FileLocks(systemClock),
    signal: never,
  });
  try {
    const { live, pending } = await store.recover();
    const dead = await store.deadLetters({ limit: 1_000, afterSeq: 0 });
    const { events, oldest } = await store.events({ after: 0, limit: 1_000_000 });
    const ends = Map.groupBy(
      events.filter(({ type }) => type === 'rollout:ended'),
      ({ rolloutId }) => rolloutId,
    );
    return [
      ...live.map(({ id, state }) => `${id}: still ${state} in the store`),
      ...pending.map(({ key }) => `${key}: still pending in the store`),
      ...dead.map(({ key, lastError }) => `${key}: a dead letter, ${lastError ?? ''}`),
      ...(events.every(({ cursor }, index) => cursor === oldest + index)
        ? []
        : ['the log of events has a gap']),
      ...evidence.flatMap(({ id, end }) => {
        const count = ends.get(id)?.length ?? 0;
        // A rollout that was cancelled before it came has no life that could end.
        return count === 1 || (count === 0 && end === 'cancelled')
          ? []
          : [`${id}: ${count} ends in the log of events`];
      }),
    ];
  } finally {
    await store.close();
  }
}
