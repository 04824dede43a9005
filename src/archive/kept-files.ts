/** Looking at what the archive keeps of one rollout. Names that begin with a dot at its top are the archive's own and never shown. */
import { createHash } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import { lstat, open, readdir } from 'node:fs/promises';
import path from 'node:path';
import type { ArchivedFile } from './rollout-archive.ts';

/** Relative path and state of every regular file below a folder, sorted by path; what goes meanwhile is left out. Links are not followed. */
export async function filesBelow(
  dir: string,
): Promise<readonly { readonly path: string; readonly stats: Stats }[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true }).catch(nothing);
  const files = await Promise.all(
    entries
      .filter((entry) => entry.isFile())
      .map(async (entry) => {
        const file = path.join(entry.parentPath, entry.name);
        const stats = await lstat(file).catch(() => null);
        const name = path.relative(dir, file).split(path.sep).join('/');
        return stats === null || name.startsWith('.') ? [] : [{ path: name, stats }];
      }),
  );
  return files.flat().sort((a, b) => (a.path < b.path ? -1 : 1));
}

/** Some 250 bytes each. */
const keptDigests = 20_000;

/** Digests of files as they were read: whoever downloads a rollout file by file must not have all of it read each time. Those that were asked for last stay. */
export class FileDigests {
  readonly #known = new Map<string, Promise<string>>();

  /** null = it cannot be read. */
  async describe(
    dir: string,
    file: { readonly path: string; readonly stats: Stats },
  ): Promise<ArchivedFile | null> {
    const { size: sizeBytes, mtime: modifiedAt } = file.stats;
    const sha256 = await this.#of(path.join(dir, file.path), file.stats).catch(() => null);
    return sha256 === null ? null : { path: file.path, sizeBytes, sha256, modifiedAt };
  }

  async #of(file: string, { dev, ino, size, mtimeMs, ctimeMs }: Stats): Promise<string> {
    const key = [dev, ino, size, mtimeMs, ctimeMs].join(' ');
    const digest = this.#known.get(key) ?? hashOf(file);
    this.#known.delete(key);
    this.#known.set(key, digest);
    for (const oldest of this.#known.keys()) {
      if (this.#known.size <= keptDigests) break;
      this.#known.delete(oldest);
    }
    try {
      return await digest;
    } catch (error) {
      this.#known.delete(key);
      throw error;
    }
  }
}

/** Host path of a regular file below `dir` that is reached without a link; null for every other name. */
export async function locateBelow(dir: string, name: string): Promise<string | null> {
  const parts = name.split('/');
  const isPlain = parts.every((part) => part !== '' && part !== '.' && part !== '..');
  if (!isPlain || name.startsWith('.') || /[\\\0]/.test(name)) return null;
  let at = dir;
  for (const [index, part] of parts.entries()) {
    at = path.join(at, part);
    const entry = await lstat(at).catch(() => null);
    const isWanted = index === parts.length - 1 ? entry?.isFile() : entry?.isDirectory();
    if (isWanted !== true) return null;
  }
  return at;
}

async function hashOf(file: string): Promise<string> {
  await using handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  const hash = createHash('sha256');
  for await (const chunk of handle.createReadStream({ autoClose: false }))
    hash.update(chunk as Buffer);
  return hash.digest('hex');
}

function nothing(error: unknown): never[] {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
  throw error;
}
