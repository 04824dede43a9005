import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import type { Logger } from '../../core/logger.ts';
import { MemoryRolloutStore } from '../../store/memory/memory-rollout-store.ts';
import type { RolloutStore } from '../../store/rollout-store.ts';
import { SqliteRolloutStore } from '../../store/sqlite/sqlite-rollout-store.ts';
import type { AppPorts } from '../ports.ts';

export async function openStore(
  config: ServeConfig,
  parts: {
    readonly ports: AppPorts;
    readonly logger: Logger;
    readonly signal: AbortSignal;
    readonly onCommit: (commit: { readonly durationMs: number; readonly writes: number }) => void;
  },
): Promise<RolloutStore> {
  const { clock, locks } = parts.ports;
  if (config.store.kind === 'memory') return new MemoryRolloutStore(() => clock.now());
  const { logger, signal, onCommit } = parts;
  return await SqliteRolloutStore.open(config.dataDir, { clock, logger, locks, signal, onCommit });
}
