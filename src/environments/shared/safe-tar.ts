/**
 * Tar streams between host and sandbox. Packing reads a trusted host folder; unpacking reads an untrusted stream: only regular files
 * and folders are written, always below the target, never through a link, with byte and entry limits.
 */
import { constants } from 'node:fs';
import { lstat, mkdir, open, readdir, readlink, rm } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import * as tar from 'tar-stream';
import { RolloutError } from '../../core/errors.ts';
import { ExcludedPaths } from './excluded-paths.ts';
import { maxEntries, refuseUnreachable } from './tree-limits.ts';

/** Default of `maxBytes`: 4 GiB. */
export const defaultMaxBytes = 4 * 1024 ** 3;

/** CONTENTS of a host folder as a tar stream, owner 0:0, modes kept, links as links; other file kinds are left out. */
export function packDir(from: string): Readable {
  const pack = tar.pack();
  void (async () => {
    await packTree(pack, from, '');
    pack.finalize();
  })().catch((error: unknown) => pack.destroy(error as Error));
  return Readable.from(pack);
}

/** One host file as a tar stream with one entry of the given name, owner 0:0, mode kept. */
export function packFile(from: string, name: string): Readable {
  const pack = tar.pack();
  void (async () => {
    await packOne(pack, from, name);
    pack.finalize();
  })().catch((error: unknown) => pack.destroy(error as Error));
  return Readable.from(pack);
}

async function packTree(pack: tar.Pack, folder: string, prefix: string): Promise<void> {
  const names = (await readdir(folder)).sort();
  for (const name of names) {
    const entryName = prefix + name;
    const full = path.join(folder, name);
    const stats = await lstat(full);
    if (stats.isDirectory()) {
      await addEntry(pack, { name: `${entryName}/`, type: 'directory', mode: stats.mode & 0o7777 });
      await packTree(pack, full, `${entryName}/`);
    } else if (stats.isSymbolicLink()) {
      const linkname = await readlink(full);
      await addEntry(pack, { name: entryName, type: 'symlink', linkname, mode: 0o777 });
    } else if (stats.isFile()) await packOne(pack, full, entryName);
  }
}

async function packOne(pack: tar.Pack, from: string, name: string): Promise<void> {
  await using file = await open(from, constants.O_RDONLY | constants.O_NOFOLLOW);
  const stats = await file.stat();
  const header = { name, size: stats.size, mode: stats.mode & 0o7777, mtime: stats.mtime };
  const written = Promise.withResolvers<undefined>();
  const entry = pack.entry({ ...ownedByRoot, ...header }, (error) => {
    if (error) written.reject(error);
    else written.resolve(undefined);
  });
  // A file that grows while it is read must not overrun its header, hence `end`.
  if (stats.size > 0)
    for await (const chunk of file.createReadStream({ end: stats.size - 1, autoClose: false }))
      if (!entry.write(chunk as Buffer)) await drained(entry);
  entry.end(null);
  await written.promise;
}

async function drained(sink: ReturnType<tar.Pack['entry']> | tar.Extract): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const done = (): void => {
      sink.off('close', failed);
      resolve();
    };
    const failed = (): void => {
      sink.off('drain', done);
      reject(new Error('the tar stream was closed early'));
    };
    sink.once('drain', done);
    sink.once('close', failed);
  });
}

const ownedByRoot = { uid: 0, gid: 0, uname: '', gname: '' } as const;

async function addEntry(
  pack: tar.Pack,
  header: Partial<tar.Header> & { name: string },
): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    pack.entry({ ...ownedByRoot, ...header }, (error) => {
      if (error) reject(error);
      else resolve();
    });
  });
}

export interface UnpackOptions {
  /** Leading path components to drop; entries with fewer are dropped. */
  readonly strip: number;
  /** Globs on the stripped path; see {@link ExcludedPaths}. */
  readonly exclude: readonly string[];
  /** Sum of file sizes; more rejects with TRANSFER_FAILED. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

/** Unpacks into a host folder of ours (created). Returns the paths of links, devices and the like that were left out. */
export async function unpackInto(
  source: Readable,
  to: string,
  options: UnpackOptions,
): Promise<{ readonly skipped: readonly string[] }> {
  await mkdir(to, { recursive: true });
  const skipped: string[] = [];
  const limits = { bytes: 0, entries: 0 };
  const excluded = new ExcludedPaths(options.exclude);
  const extract = tar.extract();
  const onAbort = (): void => extract.destroy(options.signal.reason as Error);
  options.signal.addEventListener('abort', onAbort, { once: true });
  if (options.signal.aborted) onAbort();
  feed(source, extract).catch((error: unknown) => extract.destroy(error as Error));
  try {
    for await (const entry of extract)
      await place(entry, { to, options, excluded, skipped, limits });
    options.signal.throwIfAborted();
  } finally {
    options.signal.removeEventListener('abort', onAbort);
    source.destroy();
  }
  return { skipped };
}

type Entry = tar.Extract extends AsyncIterable<infer T> ? T : never;

async function feed(source: Readable, extract: tar.Extract): Promise<void> {
  for await (const chunk of source) if (!extract.write(chunk as Buffer)) await drained(extract);
  extract.end(null);
}

interface Unpacking {
  readonly to: string;
  readonly options: UnpackOptions;
  readonly excluded: ExcludedPaths;
  readonly skipped: string[];
  readonly limits: { bytes: number; entries: number };
}

async function place(entry: Entry, unpacking: Unpacking): Promise<void> {
  const { options, excluded, limits, skipped } = unpacking;
  const { name, type, size, mode } = entry.header;
  const relative = safeRelative(name, options.strip);
  limits.entries += 1;
  limits.bytes += type === 'file' || type === 'contiguous-file' ? size : 0;
  if (limits.bytes > options.maxBytes || limits.entries > maxEntries)
    throw tooLarge(options.maxBytes);
  if (relative === null || excluded.isBelow(relative)) {
    entry.resume();
    return;
  }
  refuseUnreachable(relative);
  const target = path.join(unpacking.to, relative);
  if (type === 'directory') {
    await makeFolder(unpacking.to, relative);
    entry.resume();
  } else if (type === 'file' || type === 'contiguous-file') {
    await makeFolder(unpacking.to, path.dirname(relative));
    await rm(target, { recursive: true, force: true });
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    await using file = await open(target, flags, (mode & 0o777) | 0o600);
    for await (const chunk of entry) await file.writeFile(chunk as Buffer);
  } else {
    skipped.push(relative);
    entry.resume();
  }
}

/** Makes each missing folder; what stands in the way and is no folder (a link of an earlier copy) is replaced. */
async function makeFolder(root: string, relative: string): Promise<void> {
  let current = root;
  for (const part of relative.split('/').filter((piece) => piece !== '' && piece !== '.')) {
    current = path.join(current, part);
    const stats = await lstat(current).catch(() => null);
    if (stats?.isDirectory()) continue;
    if (stats !== null) await rm(current, { force: true });
    await mkdir(current, { mode: 0o755 });
  }
}

/** The path below the target, or null for the root itself and for what was stripped away. */
function safeRelative(name: string, strip: number): string | null {
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..') || name.includes('\0'))
    throw new RolloutError('ARCHIVE_UNSAFE', 'an archive entry points outside its folder', {
      phase: 'collect',
      detail: name.slice(0, 200),
    });
  const kept = parts.slice(strip);
  return kept.length === 0 ? null : kept.join('/');
}

function tooLarge(maxBytes: number): RolloutError {
  return new RolloutError('TRANSFER_FAILED', `the copy is larger than ${maxBytes} bytes`, {
    phase: 'collect',
    retryable: false,
    remedy: 'Exclude large files from the artifact, or raise the limit.',
  });
}
