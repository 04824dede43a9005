import { join } from 'node:path';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { makeFolder } from '../../core/make-folder.ts';

/** What the folder of a server holds, beside what the store keeps there. */
export const archiveDirOf = (dataDir: string): string => join(dataDir, 'archive');
/** Of rollouts that are not archived yet. */
export const captureDirOf = (dataDir: string): string => join(dataDir, 'model-calls');
export const logFileOf = (dataDir: string): string => join(dataDir, 'logs', 'server.ndjson');

/** CONFIG_INVALID when it is not there and cannot be made. */
export async function makeDataFolder(dataDir: string): Promise<void> {
  try {
    await makeFolder(dataDir, { mode: 0o700 });
  } catch (error) {
    throw new RolloutError('CONFIG_INVALID', `${dataDir} cannot be made: ${messageOf(error)}`, {
      phase: 'config',
      field: 'data_dir',
      cause: error,
      remedy: 'Name a folder that this user may write to.',
    });
  }
}
