import path from 'node:path';
import { openBackend, startsPrograms, type BackendParts } from '../../backends/registry.ts';
import type { ExecutionBackend } from '../../backends/execution-backend.ts';
import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { settingRows } from '../../config/serve/setting-table.ts';
import type { Logger } from '../../core/logger.ts';
import type { AppPorts } from '../ports.ts';
import { nativePorts } from './native-ports.ts';
import { ProcessBackend } from './process-backend.ts';

/** In a process of its own where its rollouts start programs. BACKEND_UNKNOWN, or what the backend says of its options. */
export async function makeBackend(
  config: ServeConfig,
  parts: {
    readonly ports: AppPorts;
    readonly logger: Logger;
    /** Its process has ended by itself. */
    readonly onLost?: (why: Error) => void;
  },
): Promise<ExecutionBackend> {
  const { ports, logger, onLost = () => undefined } = parts;
  const { composition } = ports;
  if (composition === null || !startsPrograms.has(config.backend.kind))
    return await makeBackendHere(config, { ports, logger });
  const { clock } = ports;
  return await ProcessBackend.open({ config, composition }, { clock, logger, onLost });
}

export async function makeBackendHere(
  config: ServeConfig,
  { ports, logger }: { readonly ports: AppPorts; readonly logger: Logger },
): Promise<ExecutionBackend> {
  const { maxConcurrent, maxQueueDepth } = config.admission;
  const { interpreter: python, path: folders } = config.python;
  // Agents in Python find their interpreter there, as those of `slipway run` do.
  const variables = {
    ...ports.machine.variables,
    SLIPWAY_PYTHON: python,
    SLIPWAY_PYTHONPATH: folders.join(path.delimiter),
  };
  const parts: BackendParts = {
    options: optionsOf(config),
    limits: { maxConcurrent, maxQueueDepth },
    dataDir: config.dataDir,
    baseDir: config.baseDir,
    clock: ports.clock,
    logger,
    interpreter: { python, path: folders },
    variables: ports.machine.variables,
    native: nativePorts({ ...ports, machine: { ...ports.machine, variables } }, { logger, config }),
  };
  return await openBackend(config.backend.kind, parts);
}

/** The backend's own section as it stands in the file; what is not set is left out. */
export function optionsOf(config: ServeConfig): Readonly<Record<string, unknown>> {
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
