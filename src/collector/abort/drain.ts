/** Waits for the rollouts that are still live. Those that do not end are told to; those that ignore that are abandoned. */
import { RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { CollectorParts } from '../collector-parts.ts';
import type { AbortScope } from './abort-scope.ts';

/** When it resolves no group is at work. */
export async function drain(
  pool: AbortScope,
  { clock, options }: Pick<CollectorParts, 'clock' | 'options'>,
): Promise<void> {
  const { drainMs } = options.abort;
  using life = new LinkedAbort([]);
  const idle = pool.idle(life.signal);
  const bound = clock.sleep(drainMs, life.signal);
  bound.catch(() => undefined);
  await Promise.race([idle, bound]);
  if (pool.pendingGroups > 0) {
    const reason = new RolloutError(
      'CANCELLED',
      `it did not end within ${drainMs} ms of an abort`,
      {
        phase: 'queue',
      },
    );
    pool.stopFinishing(reason);
    for (const run of pool.runs) run.stop(reason);
    await idle;
  }
  life.abort(new Error('the drain is over'));
}
