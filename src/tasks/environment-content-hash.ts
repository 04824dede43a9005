import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { boundary } from '../core/errors.ts';
import { hashInto, listTree } from './file-walk.ts';

const skippedNames = new Set(['.DS_Store', '.git', '__pycache__']);

export interface EnvironmentHashOptions {
  /** Hashed in place of a context without files: the image's name; null = the folder's name. */
  readonly fallback: string | null;
  readonly signal: AbortSignal;
  /** Hex digits; 32 names an image, 12 a snapshot. */
  readonly digits?: number;
}

/**
 * The identity of a build context: equal hashes share one image. Files in bytewise order of their paths, each as length and bytes of
 * its path, length and bytes of its content (lengths 4 bytes, big-endian). Links, `.git`, `__pycache__` and `.DS_Store` do not
 * count. TASK_FILE_MISSING when a file cannot be read or changes meanwhile.
 */
export function environmentContentHash(
  dir: string,
  { fallback, signal, digits = 32 }: EnvironmentHashOptions,
): Promise<string> {
  const at = { code: 'TASK_FILE_MISSING', phase: 'environment', what: 'build context' } as const;
  return boundary(at, async () => {
    const hash = createHash('sha256');
    const files = (await listTree(dir, signal)).filter(
      ({ entry, relative }) =>
        entry.isFile() && !relative.split('/').some((part) => skippedNames.has(part)),
    );
    for (const { relative, absolute } of files) {
      const name = Buffer.from(relative);
      const { size } = await stat(absolute);
      hash.update(uint32(name.length)).update(name).update(uint32(size));
      if ((await hashInto(hash, absolute, signal)) !== size)
        throw new Error(`${relative} changed while it was read`);
    }
    if (files.length === 0) hash.update(fallback ?? path.basename(dir));
    return hash.digest('hex').slice(0, digits);
  });
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}
