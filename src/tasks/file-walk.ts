import type { Dirent } from 'node:fs';
import { createReadStream } from 'node:fs';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { createHash, type Hash } from 'node:crypto';
import { errnoOf } from './file-presence.ts';

/** One thing in a folder tree that is no real folder: a file, link, socket. */
export interface TreeEntry {
  /** Relative to the root, forward slashes. */
  readonly relative: string;
  readonly absolute: string;
  readonly entry: Dirent;
}

/** Everything below a folder except folders, links not followed, in bytewise order of relative paths. A missing folder holds nothing. */
export async function listTree(root: string, signal: AbortSignal): Promise<readonly TreeEntry[]> {
  const found = await walk(root, '', signal);
  return found.sort((left, right) => compareBytes(left.relative, right.relative));
}

async function walk(root: string, prefix: string, signal: AbortSignal): Promise<TreeEntry[]> {
  signal.throwIfAborted();
  const entries = await readdir(path.join(root, prefix), { withFileTypes: true }).catch(
    (error: unknown) => {
      if (errnoOf(error) === 'ENOENT' && prefix === '') return [];
      throw error;
    },
  );
  const found: TreeEntry[] = [];
  for (const entry of entries) {
    const relative = prefix === '' ? entry.name : `${prefix}/${entry.name}`;
    if (entry.isDirectory()) found.push(...(await walk(root, relative, signal)));
    else found.push({ relative, absolute: path.join(root, relative), entry });
  }
  return found;
}

/** The order of the UTF-8 bytes, which is that of code points; the default order of strings differs beyond U+FFFF. */
export function compareBytes(left: string, right: string): number {
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}

/** Streams a file into a hash. Returns how many bytes it had. */
export async function hashInto(hash: Hash, file: string, signal: AbortSignal): Promise<number> {
  let sizeBytes = 0;
  try {
    for await (const chunk of createReadStream(file, { signal }) as AsyncIterable<Buffer>) {
      hash.update(chunk);
      sizeBytes += chunk.length;
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
  return sizeBytes;
}

/** SHA-256 of a file, in hex. */
export async function fileSha256(file: string, signal: AbortSignal): Promise<string> {
  const hash = createHash('sha256');
  await hashInto(hash, file, signal);
  return hash.digest('hex');
}
