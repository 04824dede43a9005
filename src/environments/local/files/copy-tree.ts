/**
 * Copies between two open folders, one of which an agent may be changing at the same time. Each entry is pinned first and judged
 * by what the pin shows. The work is done in short synchronous slices (one system call each costs microseconds, a hop to the
 * thread pool ten times that); large files are read and written asynchronously.
 */
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  futimesSync,
  read,
  readSync,
  write,
  writeSync,
} from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import { RolloutError } from '../../../core/errors.ts';
import { maxEntries, refuseUnreachable, tooMany } from '../../shared/tree-limits.ts';
import { OpenFolder, type FileName, type PinnedEntry } from './open-folder.ts';

export interface CopyRules {
  /** What happens to links: copied as links, or left out and reported. Devices, pipes and sockets are always left out. */
  readonly links: 'copy' | 'skip';
  /** Owner of what is made; null = this process. */
  readonly owner: { readonly uid: number; readonly gid: number } | null;
  /** Bits of the source's mode that are kept. */
  readonly modeMask: number;
  /** Whether the entry at this path, relative to the source, is left out silently, with all below it. */
  readonly isExcluded: (path: string) => boolean;
  /** TRANSFER_FAILED beyond this many bytes. */
  readonly maxBytes: number;
  readonly signal: AbortSignal;
}

const sliceMs = 10;
const smallBytes = 128 * 1024;
const chunkBytes = 4 * 1024 * 1024;
const readAsync = promisify(read);
const writeAsync = promisify(write);

export class TreeCopy {
  readonly #rules: CopyRules;
  readonly #skipped: string[] = [];
  #bytes = 0;
  #entries = 0;
  #sliceStart = performance.now();
  readonly #token = randomBytes(8).toString('hex');
  #draft = 0;
  #reused = Buffer.alloc(0);

  constructor(rules: CopyRules) {
    this.#rules = rules;
  }

  /** Paths, relative to the source, of entries that could not be copied because of what they are. */
  get skipped(): readonly string[] {
    return this.#skipped;
  }

  /** Contents of one folder into another. */
  async folder(from: OpenFolder, to: OpenFolder, prefix = ''): Promise<void> {
    for (const name of from.names()) {
      await this.#breathe();
      this.#entries += 1;
      if (this.#entries > maxEntries) throw tooMany(`holds more than ${maxEntries} entries`);
      const path = prefix + name.toString('utf8');
      if (this.#rules.isExcluded(path)) continue;
      refuseUnreachable(path);
      using entry = from.pin(name);
      if (entry === null) continue; // it has gone meanwhile
      if (entry.stats.isDirectory()) await this.#subfolder(entry, to, { name, path });
      else if (entry.stats.isFile()) await this.file(entry, to, name);
      else if (entry.stats.isSymbolicLink() && this.#rules.links === 'copy')
        this.#link(from, to, name);
      else this.#skipped.push(path);
    }
  }

  /** One pinned regular file under a name; replaces a file or link of that name. */
  async file(entry: PinnedEntry, to: OpenFolder, name: FileName): Promise<void> {
    const draft = this.#draftName();
    const source = entry.reopen(constants.O_RDONLY);
    try {
      const target = to.createFile(draft);
      try {
        await this.#content(source, target, entry.stats.size);
        this.#dress(target, entry);
      } finally {
        closeSync(target);
      }
      to.rename(draft, name);
    } catch (error) {
      to.remove(draft);
      throw error;
    } finally {
      closeSync(source);
    }
  }

  async #subfolder(
    entry: PinnedEntry,
    to: OpenFolder,
    at: { readonly name: FileName; readonly path: string },
  ): Promise<void> {
    using source = new OpenFolder(entry.reopen(constants.O_RDONLY | constants.O_DIRECTORY));
    using target = to.ensureFolder(at.name);
    await this.folder(source, target, `${at.path}/`);
    this.#dress(target.fd, entry);
  }

  /** Not guessable, so that nobody in the sandbox can take it first. */
  #draftName(): FileName {
    this.#draft += 1;
    return Buffer.from(`.slipway-${this.#token}-${this.#draft}`);
  }

  #link(from: OpenFolder, to: OpenFolder, name: FileName): void {
    const target = from.linkTarget(name);
    const draft = this.#draftName();
    to.createLink(draft, target);
    try {
      to.rename(draft, name);
    } catch (error) {
      to.remove(draft);
      throw error;
    }
  }

  /** Small files in one slice, larger ones asynchronously. What counts is what is read, not what the size claims. */
  async #content(source: number, target: number, size: number): Promise<void> {
    const isSmall = size <= smallBytes;
    const length = isSmall ? smallBytes : chunkBytes;
    const buffer = this.#buffer(length);
    for (;;) {
      const bytesRead = isSmall
        ? readSync(source, buffer, 0, length, null)
        : (await readAsync(source, buffer, 0, length, null)).bytesRead;
      if (bytesRead === 0) return;
      this.#bytes += bytesRead;
      if (this.#bytes > this.#rules.maxBytes) throw tooLarge(this.#rules.maxBytes);
      for (let done = 0; done < bytesRead;)
        done += isSmall
          ? writeSync(target, buffer, done, bytesRead - done, null)
          : (await writeAsync(target, buffer, done, bytesRead - done, null)).bytesWritten;
      await this.#breathe();
    }
  }

  #buffer(length: number): Buffer {
    if (this.#reused.length < length) this.#reused = Buffer.allocUnsafeSlow(length);
    return this.#reused;
  }

  #dress(fd: number, like: PinnedEntry): void {
    if (this.#rules.owner !== null) fchownSync(fd, this.#rules.owner.uid, this.#rules.owner.gid);
    fchmodSync(fd, like.stats.mode & this.#rules.modeMask); // after chown, which clears setuid
    futimesSync(fd, like.stats.atimeMs / 1000, like.stats.mtimeMs / 1000);
  }

  async #breathe(): Promise<void> {
    this.#rules.signal.throwIfAborted();
    if (performance.now() - this.#sliceStart < sliceMs) return;
    await nextTurn();
    this.#sliceStart = performance.now();
  }
}

function tooLarge(maxBytes: number): RolloutError {
  return new RolloutError('TRANSFER_FAILED', `the copy is larger than ${maxBytes} bytes`, {
    phase: 'environment',
    retryable: false,
    remedy: 'Exclude large files, or raise the limit.',
  });
}
