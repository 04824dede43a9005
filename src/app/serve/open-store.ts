import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import type { Logger } from '../../core/logger.ts';
import { MemoryRolloutStore } from '../../store/memory/memory-rollout-store.ts';
import type { RolloutStore } from '../../store/rollout-store.ts';
import type { AppPorts } from '../ports.ts';

export async function openStore(
  _config: ServeConfig,
  parts: { readonly ports: AppPorts; readonly logger: Logger; readonly signal: AbortSignal },
): Promise<RolloutStore> {
  const { clock } = parts.ports;
  await Promise.resolve();
  return new MemoryRolloutStore(() => clock.now());
}
