/** The store of a server as files: copied while the server runs, taken back to an earlier schema while it does not. */
import type { Logger } from '../core/logger.ts';
import { backupStoreFolder, downgradeStoreFolder } from '../store/sqlite/copy-store.ts';
import type { AppPorts } from './ports.ts';

export async function backupStore(
  dataDir: string,
  path: string,
  signal: AbortSignal,
): Promise<void> {
  await backupStoreFolder(dataDir, path, signal);
}

export interface Downgrade {
  readonly from: number;
  readonly to: number;
  /** What the file was before; null = nothing changed. */
  readonly copy: string | null;
}

export async function downgradeStore(
  dataDir: string,
  version: number,
  parts: { readonly ports: AppPorts; readonly logger: Logger; readonly signal: AbortSignal },
): Promise<Downgrade> {
  const { logger, signal } = parts;
  return await downgradeStoreFolder(dataDir, version, { locks: parts.ports.locks, logger, signal });
}
