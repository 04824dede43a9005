import { chmod, readdir, stat } from 'node:fs/promises';
import path from 'node:path';

/** Of a folder and all below it, whatever this process keeps new files from. Programs that packages bring stay programs. */
export async function openToAll(dir: string): Promise<void> {
  await chmod(dir, 0o755);
  for (const entry of await readdir(dir, { recursive: true, withFileTypes: true })) {
    const file = path.join(entry.parentPath, entry.name);
    if (entry.isDirectory()) await chmod(file, 0o755);
    else if (entry.isFile())
      await chmod(file, ((await stat(file)).mode & 0o100) === 0 ? 0o644 : 0o755);
  }
}
