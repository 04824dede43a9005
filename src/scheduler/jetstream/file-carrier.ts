/**
 * Files and folders of results, by way of the object store: a host puts them there, the front end takes them into a folder of its own. Links are left out. An object is
 * tried more than once: its server may die, or be cut off, while it is on its way.
 */
import type { ObjectStore } from '@nats-io/obj';
import { createReadStream, createWriteStream } from 'node:fs';
import { mkdir, readdir, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { ReadableStream } from 'node:stream/web';
import { setTimeout as delay } from 'node:timers/promises';
import { RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { KeptFile } from '../../wire/rollout/kept-file.ts';

const tries = 4;
const retryMs = 500;
/** Longer than the election of a leader. */
export const defaultStallMs = 20_000;

export interface CarriedFile {
  readonly name: string;
  readonly isFolder: boolean;
  /** With the path below the folder; a file has one, with an empty path. */
  readonly parts: readonly { readonly path: string; readonly object: string }[];
}

export interface CarrierParts {
  readonly store: ObjectStore;
  readonly signal: AbortSignal;
  /** So long nothing may arrive of an object that is taken. */
  readonly stallMs?: number;
}

/** `under`: names of objects begin with it. A file that is gone is left out, as the archive would do it. QUEUE_UNAVAILABLE. */
export async function putFiles(
  files: readonly Pick<KeptFile, 'name' | 'path'>[],
  under: string,
  parts: CarrierParts,
): Promise<readonly CarriedFile[]> {
  const carried: CarriedFile[] = [];
  let count = 0;
  for (const { name, path: from } of files) {
    const found = await stat(from).catch(() => null);
    if (found === null) continue;
    const isFolder = found.isDirectory();
    const paths = isFolder ? await filesBelow(from) : [''];
    const own: { path: string; object: string }[] = [];
    for (const one of paths) {
      const object = `${under}/${(count += 1)}`;
      await patiently(() => put(path.join(from, one), object, parts), parts.signal);
      own.push({ path: one, object });
    }
    carried.push({ name, isFolder, parts: own });
  }
  return carried;
}

/** Into `dir`, which is made; the objects go. QUEUE_UNAVAILABLE. */
export async function takeFiles(
  carried: readonly CarriedFile[],
  dir: string,
  parts: CarrierParts,
): Promise<readonly KeptFile[]> {
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const taken: KeptFile[] = [];
  for (const [index, { name, isFolder, parts: own }] of carried.entries()) {
    const root = path.join(dir, String(index));
    if (isFolder) await mkdir(root, { recursive: true });
    for (const part of own) {
      const to = path.join(root, part.path);
      if (to !== root && !to.startsWith(root + path.sep))
        throw new TypeError('a file of a result lies outside its folder');
      await mkdir(path.dirname(to), { recursive: true });
      await patiently(() => take(part.object, to, parts), parts.signal);
      // One that stays goes when it is old.
      await parts.store.delete(part.object).catch(() => undefined);
    }
    taken.push({ name, path: root, mayBeTaken: true });
  }
  return taken;
}

async function put(from: string, object: string, { store }: CarrierParts): Promise<void> {
  const file = createReadStream(from);
  try {
    const stream = Readable.toWeb(file);
    await store.put({ name: object }, stream as globalThis.ReadableStream<Uint8Array>);
  } finally {
    file.destroy();
  }
}

async function take(
  object: string,
  to: string,
  { store, signal, stallMs = defaultStallMs }: CarrierParts,
): Promise<void> {
  const found = await store.get(object);
  // The newest leader may not know it yet.
  if (found === null) throw new Error(`${object} is not in the object store`);
  using watched = new LinkedAbort([signal]);
  const stalled = (): void => watched.abort(new Error('nothing of it arrives'));
  let timer = setTimeout(stalled, stallMs);
  try {
    await pipeline(
      Readable.fromWeb(found.data as ReadableStream),
      async function* (chunks: AsyncIterable<Uint8Array>) {
        for await (const chunk of chunks) {
          clearTimeout(timer);
          timer = setTimeout(stalled, stallMs);
          yield chunk;
        }
      },
      createWriteStream(to),
      { signal: watched.signal },
    );
  } finally {
    clearTimeout(timer);
  }
}

async function patiently(work: () => Promise<void>, signal: AbortSignal): Promise<void> {
  for (let left = tries - 1; ; left -= 1) {
    signal.throwIfAborted();
    try {
      await work();
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (left === 0)
        throw new RolloutError('QUEUE_UNAVAILABLE', 'the queue does not carry a file of a result', {
          ...{ phase: 'server', cause: error },
          remedy: 'Look at the NATS servers: whether they have a quorum, and space for files.',
        });
      await delay(retryMs, undefined, { signal }).catch(() => undefined);
    }
  }
}

async function filesBelow(dir: string): Promise<readonly string[]> {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(dir, path.join(entry.parentPath, entry.name)));
}
