/** Files and folders of results, by way of the object store: a host puts them there, the front end takes them into a folder of its own. Links are left out. */
import type { ObjectStore } from '@nats-io/obj';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import type { KeptFile } from '../../wire/rollout/kept-file.ts';

export interface CarriedFile {
  readonly name: string;
  readonly isFolder: boolean;
  /** With the path below the folder; a file has one, with an empty path. */
  readonly parts: readonly { readonly path: string; readonly object: string }[];
}

/** `under`: names of objects begin with it. A file that is gone is left out, as the archive would do it. */
export async function putFiles(
  files: readonly Pick<KeptFile, 'name' | 'path'>[],
  under: string,
  store: ObjectStore,
): Promise<readonly CarriedFile[]> {
  const carried: CarriedFile[] = [];
  let count = 0;
  for (const { name, path: from } of files) {
    const found = await stat(from).catch(() => null);
    if (found === null) continue;
    const isFolder = found.isDirectory();
    const paths = isFolder ? await filesBelow(from) : [''];
    const parts: { path: string; object: string }[] = [];
    for (const one of paths) {
      const object = `${under}/${(count += 1)}`;
      const stream = Readable.toWeb(createReadStream(path.join(from, one)));
      await store.put({ name: object }, stream as globalThis.ReadableStream<Uint8Array>);
      parts.push({ path: one, object });
    }
    carried.push({ name, isFolder, parts });
  }
  return carried;
}

/** Into `dir`, which is made; the objects go. */
export async function takeFiles(
  carried: readonly CarriedFile[],
  dir: string,
  store: ObjectStore,
): Promise<readonly KeptFile[]> {
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const taken: KeptFile[] = [];
  for (const [index, { name, isFolder, parts }] of carried.entries()) {
    const root = path.join(dir, String(index));
    if (isFolder) await mkdir(root, { recursive: true });
    for (const part of parts) {
      const to = path.join(root, part.path);
      if (to !== root && !to.startsWith(root + path.sep))
        throw new TypeError('a file of a result lies outside its folder');
      await mkdir(path.dirname(to), { recursive: true });
      const object = await store.get(part.object);
      if (object === null) throw new Error(`${name} is not in the object store any more`);
      await pipeline(Readable.fromWeb(object.data as ReadableStream), createWriteStream(to));
      const problem = await object.error;
      if (problem !== null) throw problem;
      await store.delete(part.object);
    }
    taken.push({ name, path: root, mayBeTaken: true });
  }
  return taken;
}

async function filesBelow(dir: string): Promise<readonly string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(dir, path.join(entry.parentPath, entry.name)));
}
