import { randomUUID } from 'node:crypto';
import { rm, rmdir, stat, statfs, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import { messageOf, RolloutError } from '../../core/errors.ts';
import type { LockPort } from '../../core/lock.ts';
import { folderInUse } from '../../store/sqlite/store-folder.ts';
import { makeDataFolder } from '../serve/data-folder.ts';
import { passed, warned, type Verdict } from './verdict.ts';

/** Less than this is soon used up by images and archives. */
const comfortableBytes = 2 ** 30;

/** Writes a file and removes it again; a folder that was missing is missing afterwards. */
export async function checkDataFolder(config: ServeConfig, locks: LockPort): Promise<Verdict> {
  const { dataDir, limits } = config;
  const missing = await missingFolders(dataDir);
  try {
    await makeDataFolder(dataDir);
    await assertWritable(dataDir);
    const holder = await folderInUse(dataDir, locks);
    if (holder !== null) throw holder;
    const { bavail, bsize } = await statfs(dataDir);
    return roomVerdict(config, { freeBytes: bavail * bsize, floorBytes: limits.diskFloorBytes });
  } finally {
    for (const dir of missing) await rmdir(dir).catch(() => undefined);
  }
}

/** Innermost first. */
async function missingFolders(dir: string): Promise<readonly string[]> {
  const missing: string[] = [];
  for (let each = dir; dirname(each) !== each; each = dirname(each)) {
    if ((await stat(each).catch(() => null)) !== null) break;
    missing.push(each);
  }
  return missing;
}

async function assertWritable(dir: string): Promise<void> {
  const file = join(dir, `.preflight-${randomUUID()}`);
  try {
    await writeFile(file, 'x', { flag: 'wx' });
  } catch (error) {
    throw new RolloutError('CONFIG_INVALID', `${dir} cannot be written: ${messageOf(error)}`, {
      phase: 'config',
      field: 'data_dir',
      cause: error,
      remedy: 'Name a folder that this user may write to, on a disk with room.',
    });
  } finally {
    await rm(file, { force: true });
  }
}

function roomVerdict(
  { dataDir }: ServeConfig,
  { freeBytes, floorBytes }: { readonly freeBytes: number; readonly floorBytes: number },
): Verdict {
  const free = `${Math.floor(freeBytes / 2 ** 20)} MiB free`;
  if (freeBytes < floorBytes)
    throw new RolloutError('DISK_FULL', `${dataDir} has ${free}: nothing would be accepted`, {
      phase: 'server',
      field: 'limits.disk_floor_bytes',
      remedy: 'Free disk space, or name another data folder.',
    });
  const remedy = 'Free disk space: images, trials and the archive need more.';
  if (freeBytes < comfortableBytes) return warned(`${dataDir} has only ${free}`, { remedy });
  return passed(`${dataDir} can be written, and nobody else uses it; ${free}`);
}
