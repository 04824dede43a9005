import { lstatSync, readdirSync, statSync, type BigIntStats } from 'node:fs';
import path from 'node:path';

/** A folder with more in it is not worth the look: the event loop waits for it. */
const mostEntries = 400;
/** A file system may tell two changes of one moment by the same time. */
const settleMs = 3_000;

/**
 * What tells one state of a folder from another by names, kinds, sizes and times alone: two equal stamps are the same content. null = it cannot tell: the
 * folder was changed a moment ago, leads to other places by links, is large, or cannot be read.
 */
export function folderStamp(dir: string, now: Date): string | null {
  const before = BigInt(now.getTime() - settleMs) * 1_000_000n;
  const rows: string[] = [];
  const waiting = [''];
  try {
    const root = statSync(dir, { bigint: true });
    if (!isSettled(root, before)) return null;
    rows.push(rowOf('', root));
    for (const folder of waiting)
      for (const name of readdirSync(path.join(dir, folder)).sort()) {
        const relative = path.join(folder, name);
        const entry = lstatSync(path.join(dir, relative), { bigint: true });
        const isFolder = entry.isDirectory();
        if (!isFolder && !entry.isFile()) return null;
        if (!isSettled(entry, before) || rows.length > mostEntries) return null;
        rows.push(rowOf(relative, entry));
        if (isFolder) waiting.push(relative); // an array also visits what is added on the way
      }
  } catch {
    return null;
  }
  return rows.join('\n');
}

function isSettled({ ctimeNs, mtimeNs }: BigIntStats, before: bigint): boolean {
  return ctimeNs < before && mtimeNs < before;
}

function rowOf(relative: string, entry: BigIntStats): string {
  const { dev, ino, mode, size, mtimeNs, ctimeNs } = entry;
  return JSON.stringify([relative, ...[dev, ino, mode, size, mtimeNs, ctimeNs].map(String)]);
}
