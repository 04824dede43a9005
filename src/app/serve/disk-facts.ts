import { statfs } from 'node:fs/promises';
import type { DiskFacts } from '../../scheduler/diagnosis.ts';

/** How full the disk under a folder is. */
export function diskFactsOf(dir: string, floorBytes: number): () => Promise<DiskFacts> {
  return async () => {
    const { bavail, blocks, bsize } = await statfs(dir);
    return { freeBytes: bavail * bsize, totalBytes: blocks * bsize, floorBytes };
  };
}
