/** Whether the store opens, and what opening it would change: found out on a copy, where it is not too large. */
import { copyFile, open, stat } from 'node:fs/promises';
import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { silentLogger } from '../../core/logger.ts';
import { RolloutError } from '../../core/errors.ts';
import { schemaSteps } from '../../store/sqlite/schema.ts';
import { SqliteRolloutStore } from '../../store/sqlite/sqlite-rollout-store.ts';
import { folderInUse, storeFile } from '../../store/sqlite/store-folder.ts';
import type { AppPorts } from '../ports.ts';
import { passed, skipped, warned, type Verdict } from './verdict.ts';

const largestCopyBytes = 256 * 2 ** 20;

export async function checkStore(
  { dataDir, store }: ServeConfig,
  { ports, scratchDir }: { readonly ports: AppPorts; readonly scratchDir: string },
  signal: AbortSignal,
): Promise<Verdict> {
  if (store.kind === 'memory') return passed('kept in memory: rollouts are forgotten at the end');
  const file = storeFile(dataDir);
  const size = (await stat(file).catch(() => null))?.size ?? null;
  if (size === null) return passed('there is none yet: the first start makes it');
  if ((await folderInUse(dataDir, ports.locks)) !== null)
    return skipped('another process uses the data folder');
  const version = await versionOf(file);
  if (size <= largestCopyBytes) await openCopy(file, { ports, scratchDir }, signal);
  else if (version > schemaSteps.length) throw tooNew(file, version);
  const looked = size <= largestCopyBytes ? 'opens' : 'is too large to be tried on a copy';
  const facts = `${file} ${looked}; schema ${version}, ${Math.ceil(size / 2 ** 20)} MiB`;
  if (version === schemaSteps.length) return passed(facts);
  return warned(`${facts}: the next start upgrades it to schema ${schemaSteps.length}`, {
    remedy: 'Keep a copy first: slipway store backup FILE.',
  });
}

/** `user_version` as the file's header has it. */
async function versionOf(file: string): Promise<number> {
  const handle = await open(file, 'r');
  try {
    const header = Buffer.alloc(100);
    const { bytesRead } = await handle.read(header, 0, 100, 0);
    return bytesRead < 100 ? 0 : header.readUInt32BE(60);
  } finally {
    await handle.close();
  }
}

/** With its log, which may hold the latest changes. Rejects as opening the store itself would. */
async function openCopy(
  file: string,
  { ports, scratchDir }: { readonly ports: AppPorts; readonly scratchDir: string },
  signal: AbortSignal,
): Promise<void> {
  const { clock, locks } = ports;
  await copyFile(file, storeFile(scratchDir));
  await copyFile(`${file}-wal`, `${storeFile(scratchDir)}-wal`).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  });
  const store = await SqliteRolloutStore.open(scratchDir, {
    ...{ clock, locks, signal, logger: silentLogger },
  }).catch((error: unknown) => {
    throw error instanceof RolloutError ? ofOriginal(error, { file, scratchDir }) : error;
  });
  await store.close();
}

/** The reader knows nothing of a copy. */
function ofOriginal(
  error: RolloutError,
  { file, scratchDir }: { readonly file: string; readonly scratchDir: string },
): RolloutError {
  const { code, phase, remedy, cause } = error;
  const message = error.message.replaceAll(storeFile(scratchDir), file);
  return new RolloutError(code, message, { phase, cause, ...(remedy !== null && { remedy }) });
}

function tooNew(file: string, version: number): RolloutError {
  return new RolloutError('STORE_TOO_NEW', `${file} has schema ${version}`, {
    phase: 'server',
    remedy: 'Use the version of Slipway that wrote it, or one after it.',
  });
}
