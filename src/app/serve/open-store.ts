import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import type { Logger } from '../../core/logger.ts';
import { MemoryRolloutStore } from '../../store/memory/memory-rollout-store.ts';
import type { RolloutStore } from '../../store/rollout-store.ts';
import { SqliteRolloutStore } from '../../store/sqlite/sqlite-rollout-store.ts';
import { holdFolder } from '../../store/sqlite/store-folder.ts';
import type { AppPorts } from '../ports.ts';

export async function openStore(
  config: ServeConfig,
  parts: {
    readonly ports: AppPorts;
    readonly logger: Logger;
    readonly signal: AbortSignal;
    readonly onCommit: (commit: { readonly durationMs: number; readonly writes: number }) => void;
    /** It cannot be used any more, and nobody closed it. */
    readonly onLost: (reason: Error) => void;
  },
): Promise<RolloutStore> {
  const { clock, locks } = parts.ports;
  if (config.store.kind === 'memory') {
    // Its archive and its trials are in the folder all the same: one server per folder.
    const lock = await holdFolder(config.dataDir, locks);
    return new MemoryRolloutStore(() => clock.now(), { onClose: () => lock.release() });
  }
  const { logger, signal, onCommit, onLost } = parts;
  return await SqliteRolloutStore.open(config.dataDir, {
    ...{ clock, logger, locks, signal, onCommit, onLost },
  });
}
