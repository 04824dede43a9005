import { createHash } from 'node:crypto';
import { readdir, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { boundary } from '../core/errors.ts';
import { errnoOf } from './file-presence.ts';
import { compareBytes, fileSha256 } from './file-walk.ts';

/**
 * `task_checksum` of result.json: the "dirhash" (SHA-256, in hex) of the whole folder, hidden files included. A file is described as
 * `data:<hash>` NUL `name:<name>`, a folder as `dirhash:<hash>` NUL `name:<name>`; a folder's hash is that of its descriptions,
 * sorted and joined by two NULs. Links are followed; folders without any file, broken links, sockets, a link back to a folder it lies
 * in and links into the kernel's own file systems are left out. TASK_FILE_MISSING when something cannot be read.
 */
export function taskChecksum(dir: string, signal: AbortSignal): Promise<string> {
  const at = { code: 'TASK_FILE_MISSING', phase: 'resolve', what: 'task checksum' } as const;
  return boundary(at, async () => (await folderHash(dir, [], signal)) ?? sha256(''));
}

/** null = no file anywhere below. `parents` are the real paths of the folders on the way here. */
async function folderHash(
  dir: string,
  parents: readonly string[],
  signal: AbortSignal,
): Promise<string | null> {
  signal.throwIfAborted();
  const real = await realpath(dir);
  if (parents.some((parent) => isBelow(parent, real)) || isOfKernel(real)) return null;
  const descriptions: string[] = [];
  for (const name of await readdir(dir)) {
    const description = await describe(path.join(dir, name), [...parents, real], signal);
    if (description !== null) descriptions.push(`${description}\0name:${name}`);
  }
  return descriptions.length === 0 ? null : sha256(descriptions.sort(compareBytes).join('\0\0'));
}

async function describe(
  file: string,
  parents: readonly string[],
  signal: AbortSignal,
): Promise<string | null> {
  const found = await stat(file).catch((error: unknown) => {
    if (errnoOf(error) === 'ENOENT' || errnoOf(error) === 'ELOOP') return null;
    throw error;
  });
  if (found?.isFile() === true && isOfKernel(await realpath(file))) return null;
  if (found?.isFile() === true) return `data:${await fileSha256(file, signal)}`;
  if (found?.isDirectory() !== true) return null;
  const hash = await folderHash(file, parents, signal);
  return hash === null ? null : `dirhash:${hash}`;
}

/** The folder itself counts. */
function isBelow(file: string, folder: string): boolean {
  return file === folder || file.startsWith(folder.endsWith('/') ? folder : `${folder}/`);
}

/** What lies there is no content: it changes, has no end, or waits for a reader of its own. */
function isOfKernel(file: string): boolean {
  return ['/proc', '/sys', '/dev'].some((folder) => isBelow(file, folder));
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
