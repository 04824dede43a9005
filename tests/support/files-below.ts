import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';

/** Texts of the regular files below a folder, by path in it. */
export async function filesBelow(dir: string): Promise<ReadonlyMap<string, string>> {
  const files = new Map<string, string>();
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const file = path.join(entry.parentPath, entry.name);
    files.set(path.relative(dir, file), await readFile(file, 'utf8'));
  }
  return files;
}
