import type { Clock } from '../../core/clock.ts';
import { messageOf } from '../../core/errors.ts';
import type { Limiter } from '../../core/limiter.ts';
import type { Logger } from '../../core/logger.ts';
import type { SandboxJournal } from '../../store/sandbox-journal.ts';

/** What ownership needs: the journal of this run, and the limiter that all providers of the process share. */
export interface Ownership {
  readonly journal: SandboxJournal;
  readonly limiter: Limiter;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Once a sandbox is gone a journal that cannot say so does no harm: the next cleaning finds nothing under the name. */
export async function recordGone(
  { journal, logger }: Pick<Ownership, 'journal' | 'logger'>,
  name: string,
): Promise<void> {
  try {
    await journal.gone(name);
  } catch (error) {
    logger.log('warn', 'removal of a sandbox was not journalled', {
      sandbox: name,
      cause: messageOf(error),
    });
  }
}
