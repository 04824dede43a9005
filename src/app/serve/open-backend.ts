import { openBackend, type BackendParts } from '../../backends/registry.ts';
import type { ExecutionBackend } from '../../backends/execution-backend.ts';
import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { settingRows } from '../../config/serve/setting-table.ts';
import type { Logger } from '../../core/logger.ts';
import type { AppPorts } from '../ports.ts';
import { nativePorts } from './native-ports.ts';

/** BACKEND_UNKNOWN, or what the backend says of its options. */
export async function makeBackend(
  config: ServeConfig,
  { ports, logger }: { readonly ports: AppPorts; readonly logger: Logger },
): Promise<ExecutionBackend> {
  const { maxConcurrent, maxQueueDepth } = config.admission;
  const parts: BackendParts = {
    options: optionsOf(config),
    limits: { maxConcurrent, maxQueueDepth },
    dataDir: config.dataDir,
    baseDir: config.baseDir,
    clock: ports.clock,
    logger,
    native: nativePorts(ports, logger),
  };
  return await openBackend(config.backend.kind, parts);
}

/** The backend's own section as it stands in the file; what is not set is left out. */
function optionsOf(config: ServeConfig): Readonly<Record<string, unknown>> {
  const { kind } = config.backend;
  const section: unknown = Object.entries(config.backend).find(([name]) => name === kind)?.[1];
  if (typeof section !== 'object' || section === null) return {};
  const before = `backend.${kind}.`;
  return Object.fromEntries(
    settingRows.flatMap(({ path, key }) => {
      if (!path.startsWith(before)) return [];
      const value = (section as Record<string, unknown>)[path.slice(before.length)];
      return value === null || value === undefined ? [] : [[key.slice(before.length), value]];
    }),
  );
}
