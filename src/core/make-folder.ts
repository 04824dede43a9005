/**
 * Making a folder with those above it. Where a folder cannot be made although the one above it is there (`/proc`), Node's own recursive making tries for
 * ever, and no signal ends it; here each missing folder is tried once.
 */
import { mkdirSync, statSync } from 'node:fs';
import { mkdir, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

export interface FolderOptions {
  /** Of every folder that is made. */
  readonly mode?: number;
}

/** Nothing happens where it is there. Rejects with the system's error. */
export async function makeFolder(dir: string, { mode = 0o777 }: FolderOptions = {}): Promise<void> {
  const missing: string[] = [];
  for (let at = resolve(dir); ; at = dirname(at)) {
    const found = await stat(at).catch(notThere);
    if (found?.isDirectory() === true) break;
    missing.push(at);
    if (found !== null) break;
  }
  for (const at of missing.reverse())
    await mkdir(at, mode).catch(async (error: unknown) => {
      // Somebody else was faster.
      if ((await stat(at).catch(notThere))?.isDirectory() !== true) throw error;
    });
}

/** As {@link makeFolder}. */
export function makeFolderSync(dir: string, { mode = 0o777 }: FolderOptions = {}): void {
  const missing: string[] = [];
  for (let at = resolve(dir); ; at = dirname(at)) {
    const found = statSync(at, { throwIfNoEntry: false });
    if (found?.isDirectory() === true) break;
    missing.push(at);
    if (found !== undefined) break;
  }
  for (const at of missing.reverse())
    try {
      mkdirSync(at, mode);
    } catch (error) {
      if (statSync(at, { throwIfNoEntry: false })?.isDirectory() !== true) throw error;
    }
}

function notThere(error: unknown): null {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'ENOTDIR') return null;
  throw error;
}
