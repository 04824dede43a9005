/**
 * Folders held open by descriptor. A name is always looked up relative to its parent's descriptor and never followed when it is a
 * link, so that whoever changes the tree meanwhile cannot lead us elsewhere: the path `/proc/self/fd/N/name` is to the kernel
 * what `openat(N, name)` is.
 */
import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  type Stats,
} from 'node:fs';

/** File names are bytes; a name that is no UTF-8 keeps its bytes. */
export type FileName = Buffer;

/** Opens the place without the thing: no device acts, no pipe blocks. Not among Node's constants. */
const pathOnly = 0o10000000;

/** An entry of a folder, pinned: what it is cannot change any more, whatever happens to its name. */
export class PinnedEntry implements Disposable {
  readonly fd: number;
  readonly stats: Stats;

  constructor(fd: number) {
    this.fd = fd;
    this.stats = fstatSync(fd);
  }

  /** The entry again, this time to read. Call it on regular files and folders only. */
  reopen(flags: number): number {
    return openSync(`/proc/self/fd/${this.fd}`, flags);
  }

  [Symbol.dispose](): void {
    closeSync(this.fd);
  }
}

export class OpenFolder implements Disposable {
  readonly fd: number;
  #isClosed = false;

  constructor(fd: number) {
    this.fd = fd;
  }

  /** A trusted path of the host. */
  static at(path: string): OpenFolder {
    return new OpenFolder(openSync(path, constants.O_RDONLY | constants.O_DIRECTORY));
  }

  /** The entry of this name, links not followed; null when there is none. */
  pin(name: FileName): PinnedEntry | null {
    try {
      return new PinnedEntry(openSync(this.#path(name), pathOnly | constants.O_NOFOLLOW));
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
      throw error;
    }
  }

  /** The sub-folder of this name. Rejects with ENOTDIR, also for a link. */
  folder(name: FileName): OpenFolder {
    const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
    return new OpenFolder(openSync(this.#path(name), flags));
  }

  /** The sub-folder of this name, made when absent; something else in its place is removed. */
  ensureFolder(name: FileName): OpenFolder {
    for (let attempt = 0; ; attempt += 1) {
      try {
        mkdirSync(this.#path(name), 0o755);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
      try {
        return this.folder(name);
      } catch (error) {
        const code = (error as NodeJS.ErrnoException).code ?? '';
        if (attempt === 3 || !['ENOTDIR', 'ELOOP', 'ENOENT'].includes(code)) throw error;
        this.remove(name);
      }
    }
  }

  names(): readonly FileName[] {
    return readdirSync(`/proc/self/fd/${this.fd}`, { encoding: 'buffer' });
  }

  linkTarget(name: FileName): Buffer {
    return readlinkSync(this.#path(name), { encoding: 'buffer' });
  }

  /** A new file for writing; EEXIST when anything has this name. */
  createFile(name: FileName): number {
    const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
    return openSync(this.#path(name), flags, 0o600);
  }

  createLink(name: FileName, target: Buffer): void {
    symlinkSync(target, this.#path(name));
  }

  /** Replaces what has the new name, unless that is a folder (EISDIR). */
  rename(from: FileName, to: FileName): void {
    renameSync(this.#path(from), this.#path(to));
  }

  /** Removes a file or link, not a folder's content. Absent is fine. */
  remove(name: FileName): void {
    rmSync(this.#path(name), { force: true });
  }

  #path(name: FileName): Buffer {
    if (name.length === 0 || name.includes('/') || name.equals(dot) || name.equals(dotDot))
      throw new Error('not the name of one entry');
    return Buffer.concat([Buffer.from(`/proc/self/fd/${this.fd}/`), name]);
  }

  [Symbol.dispose](): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    closeSync(this.fd);
  }
}

const dot = Buffer.from('.');
const dotDot = Buffer.from('..');
