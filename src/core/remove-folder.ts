import { opendirSync, rmSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';

/** Whose removal takes some milliseconds. */
const smallEntries = 200;

/**
 * Removes a folder with what it holds; one that is not there is no problem. A small one goes in one turn: step by step each of its files would wait for what else
 * the process does, and cost several times as much.
 */
export async function removeFolder(dir: string): Promise<void> {
  if (isSmall(dir)) rmSync(dir, { recursive: true, force: true });
  else await rm(dir, { recursive: true, force: true, maxRetries: 3 });
}

/** Whether a folder has few entries, however deep; also when it is not there. */
function isSmall(dir: string): boolean {
  const folders = [dir];
  let left = smallEntries;
  for (const folder of folders)
    try {
      using open = opendirSync(folder);
      for (let entry = open.readSync(); entry !== null; entry = open.readSync()) {
        left -= 1;
        if (left < 0) return false;
        if (entry.isDirectory()) folders.push(join(folder, entry.name));
      }
    } catch {
      continue; // it is not there, or removing it says what is wrong
    }
  return true;
}
