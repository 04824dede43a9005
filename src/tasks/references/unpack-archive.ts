/**
 * Unpacks a foreign tar.gz. Nothing is written outside the folder: names are relative and without `..`, every name occurs once, links are
 * made last so that nothing is written through them, and only links that stay inside are made at all. Sizes are bounded
 * while they arrive, so that a bomb ends early.
 */
import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { link, mkdir, symlink } from 'node:fs/promises';
import { dirname, join, posix } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip } from 'node:zlib';
import { extract, type Header } from 'tar-stream';
import { attribute, isRolloutError, RolloutError } from '../../core/errors.ts';
import { staysInside, unsafe } from './inside-links.ts';

export interface UnpackLimits {
  readonly packedBytes: number;
  readonly unpackedBytes: number;
  readonly entries: number;
}

export const defaultUnpackLimits: UnpackLimits = {
  packedBytes: 2 * 1024 ** 3,
  unpackedBytes: 8 * 1024 ** 3,
  entries: 200_000,
};

/** The SHA-256 of every regular file, in hex, by POSIX path. */
export type FileDigests = ReadonlyMap<string, string>;

type EntryContent = AsyncIterable<unknown> & { resume: () => unknown };

interface UnpackOptions {
  /** Exists and is empty. */
  readonly dir: string;
  readonly limits: UnpackLimits;
  readonly signal: AbortSignal;
}

/**
 * Throws ARCHIVE_UNSAFE. A stream that breaks off, or is no tar.gz, throws REGISTRY_UNAVAILABLE, as a passing fault.
 */
export async function unpackArchive(
  chunks: AsyncIterable<Uint8Array>,
  options: UnpackOptions,
): Promise<FileDigests> {
  const unpacking = new Unpacking(options);
  const archive = extract();
  const reading = pipeline(
    Readable.from(bounded(chunks, options.limits.packedBytes, 'is'), { objectMode: false }),
    createGunzip(),
    (unpacked: AsyncIterable<Uint8Array>) =>
      bounded(unpacked, options.limits.unpackedBytes, 'unpacks to'),
    archive,
    { signal: options.signal },
  );
  reading.catch(() => undefined); // awaited below, after the entries
  try {
    for await (const entry of archive) await unpacking.take(entry.header, entry);
    await reading;
    return await unpacking.finish();
  } catch (error) {
    archive.destroy();
    await reading.catch(() => undefined);
    options.signal.throwIfAborted();
    throw typed(error);
  }
}

class Unpacking {
  readonly #dir: string;
  readonly #limits: UnpackLimits;
  readonly #signal: AbortSignal;
  readonly #digests = new Map<string, string>();
  readonly #names = new Set<string>();
  readonly #symlinks: { readonly path: string; readonly target: string }[] = [];
  #entries = 0;

  constructor({ dir, limits, signal }: UnpackOptions) {
    this.#dir = dir;
    this.#limits = limits;
    this.#signal = signal;
  }

  async take(header: Header, content: EntryContent): Promise<void> {
    this.#entries += 1;
    if (this.#entries > this.#limits.entries)
      throw unsafe(`the archive holds more than ${this.#limits.entries} entries`);
    const path = insidePath(header.name);
    switch (header.type) {
      case 'directory':
        if (path !== '.') await mkdir(join(this.#dir, path), { recursive: true });
        content.resume();
        break;
      case 'file':
      case 'contiguous-file':
        this.#claim(path);
        await this.#writeFile(path, header, content);
        break;
      case 'link':
        this.#claim(path);
        await this.#hardLink(path, header.linkname);
        content.resume();
        break;
      case 'symlink':
        this.#claim(path);
        this.#symlinks.push({ path, target: header.linkname });
        content.resume();
        break;
      case 'block-device':
      case 'character-device':
      case 'fifo':
      default: // the library names types it does not know with others of its own
        throw unsafe(`${path} is neither file, folder nor link`);
    }
  }

  async finish(): Promise<FileDigests> {
    const linked = new Set(this.#symlinks.map(({ path }) => path));
    for (const { path, target } of this.#symlinks) {
      // Below another link it would be made elsewhere than its name says.
      if (ancestorsOf(path).some((ancestor) => linked.has(ancestor)))
        throw unsafe(`the archive writes ${path} through a link`);
      if (!staysInside(path, target)) throw unsafe(`the link ${path} leaves its folder`);
      await mkdir(dirname(join(this.#dir, path)), { recursive: true });
      await symlink(target, join(this.#dir, path));
    }
    return this.#digests;
  }

  #claim(path: string): void {
    if (path === '.' || this.#names.has(path)) throw unsafe(`the archive holds ${path} twice`);
    this.#names.add(path);
  }

  async #writeFile(path: string, header: Header, content: EntryContent): Promise<void> {
    const file = join(this.#dir, path);
    await mkdir(dirname(file), { recursive: true });
    const hash = createHash('sha256');
    const mode = header.mode & 0o111 ? 0o755 : 0o644;
    const hashed = async function* (): AsyncGenerator<Uint8Array> {
      for await (const chunk of content) {
        const bytes = chunk as Uint8Array; // tar-stream's entries carry nothing else
        hash.update(bytes);
        yield bytes;
      }
    };
    await pipeline(hashed, createWriteStream(file, { flags: 'wx', mode }), {
      signal: this.#signal,
    });
    this.#digests.set(path, hash.digest('hex'));
  }

  async #hardLink(path: string, linkName: string): Promise<void> {
    const target = insidePath(linkName);
    const digest = this.#digests.get(target);
    if (digest === undefined) throw unsafe(`the link ${path} names no earlier file of the archive`);
    await mkdir(dirname(join(this.#dir, path)), { recursive: true });
    await link(join(this.#dir, target), join(this.#dir, path));
    this.#digests.set(path, digest);
  }
}

/** The name of an entry as a path inside the folder; `.` for the folder itself. */
function insidePath(name: string): string {
  const isForeign = name === '' || name.startsWith('/') || /[\0\\]/.test(name);
  if (isForeign || name.split('/').includes('..'))
    throw unsafe(
      `the archive names ${JSON.stringify(name.slice(0, 200))}, which is outside its folder`,
    );
  return posix.normalize(name).replace(/\/+$/, '') || '.';
}

function ancestorsOf(path: string): readonly string[] {
  const parts = path.split('/').slice(0, -1);
  return parts.map((_, index) => parts.slice(0, index + 1).join('/'));
}

async function* bounded(
  chunks: AsyncIterable<Uint8Array>,
  limit: number,
  verb: string,
): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const chunk of chunks) {
    size += chunk.length;
    if (size > limit) throw unsafe(`the archive ${verb} more than ${limit} bytes`);
    yield chunk;
  }
}

/** Zlib and tar-stream complain about what was received; everything else keeps its own cause. */
function typed(error: unknown): unknown {
  if (isRolloutError(error)) return error;
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined;
  // A name that is a file here and a folder there.
  if (code === 'EEXIST' || code === 'ENOTDIR' || code === 'EISDIR' || code === 'ENAMETOOLONG')
    return unsafe('the archive contradicts itself: a name is a file and a folder');
  const isSystem = code !== undefined && /^E[A-Z]+$/.test(code);
  if (isSystem) return attribute(error, 'INTERNAL', 'resolve', 'the archive cannot be unpacked');
  return new RolloutError('REGISTRY_UNAVAILABLE', 'the archive breaks off or is no tar.gz', {
    phase: 'resolve',
    cause: error,
  });
}
