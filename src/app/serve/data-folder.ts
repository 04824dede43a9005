import { mkdir, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { messageOf, RolloutError } from '../../core/errors.ts';

/** What the folder of a server holds, beside what the store keeps there. */
export const archiveDirOf = (dataDir: string): string => join(dataDir, 'archive');
export const logFileOf = (dataDir: string): string => join(dataDir, 'logs', 'server.ndjson');

/** CONFIG_INVALID when it is not there and cannot be made. */
export async function makeDataFolder(dataDir: string): Promise<void> {
  const found = await stat(dataDir).catch(() => null);
  if (found?.isDirectory() === true) return;
  try {
    // Where a folder cannot be made although its parent is there (`/proc`), a recursive attempt would never end.
    const parent = await stat(dirname(dataDir)).catch(() => null);
    await mkdir(dataDir, { recursive: parent === null, mode: 0o700 });
  } catch (error) {
    throw new RolloutError('CONFIG_INVALID', `${dataDir} cannot be made: ${messageOf(error)}`, {
      phase: 'config',
      field: 'data_dir',
      cause: error,
      remedy: 'Name a folder that this user may write to.',
    });
  }
}
