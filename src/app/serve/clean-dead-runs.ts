/** A server that comes back removes the sandboxes of the life before, beside its other work: nobody waits for it. */
import { messageOf } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import { FileSandboxJournalStore } from '../../store/file/file-sandbox-journal.ts';
import type { AppPorts } from '../ports.ts';
import { reapAtStart } from '../sandbox-run.ts';

export interface CleanDeadRunsOptions {
  /** Looks for sandboxes also where no journal names one: by their labels. */
  readonly looksForLabels: boolean;
  readonly signal: AbortSignal;
  readonly logger: Logger;
}

/** Answers with the sandboxes that are gone. Never rejects: what it cannot remove is logged, and `slipway cleanup` tries again. */
export async function cleanDeadRuns(
  options: CleanDeadRunsOptions,
  ports: AppPorts,
): Promise<readonly string[]> {
  const { signal, logger } = options;
  try {
    const journals = await FileSandboxJournalStore.open(ports.machine.stateDir, ports.locks);
    if (!options.looksForLabels) {
      const dead = await journals.deadRuns();
      for (const run of dead) run.release();
      if (dead.length === 0) return [];
    }
    const { removed, failed } = await reapAtStart([], journals, { signal, ports });
    if (removed.length > 0)
      logger.log('info', 'sandboxes of dead runs were removed', { sandboxes: removed });
    for (const { name, error } of failed)
      logger.log('warn', 'a sandbox of a dead run was not removed', {
        sandbox: name,
        cause: error.describe(),
      });
    return removed;
  } catch (error) {
    if (!signal.aborted)
      logger.log('warn', 'dead runs were not cleaned up', { cause: messageOf(error) });
    return [];
  }
}
