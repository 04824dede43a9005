/** Copies between host and sandbox, made by this process on the sandbox's own root: no program of the sandbox takes part. */
import { constants, mkdirSync, openSync } from 'node:fs';
import path from 'node:path';
import { attribute, RolloutError } from '../../../core/errors.ts';
import type { DownloadOptions } from '../../environment.ts';
import { ExcludedPaths } from '../../shared/excluded-paths.ts';
import { TreeCopy, type CopyRules } from './copy-tree.ts';
import { OpenFolder, PinnedEntry } from './open-folder.ts';
import { SandboxRoot } from './sandbox-root.ts';

const defaultMaxBytes = 4 * 1024 ** 3;
const root = { uid: 0, gid: 0 };

export class Transfers {
  readonly #rootPath: () => string;
  readonly #owner: CopyRules['owner'];

  /**
   * @param rootPath The sandbox's root as the host sees it now; may throw when the sandbox is gone.
   * @param options.ownsAsRoot Whether this process may give files to the sandbox's root user.
   */
  constructor(rootPath: () => string, options: { readonly ownsAsRoot: boolean }) {
    this.#rootPath = rootPath;
    this.#owner = options.ownsAsRoot ? root : null;
  }

  uploadFile(from: string, to: string, signal: AbortSignal): Promise<void> {
    return edge(`upload to ${to}`, signal, async () => {
      using entry = new PinnedEntry(openSync(from, constants.O_RDONLY | constants.O_NONBLOCK));
      if (!entry.stats.isFile()) throw refused(`${from} is not a regular file`);
      using place = this.#root().place(to, { areParentsCreated: true });
      if (place.name === null || to.endsWith('/')) throw refused(`${to} names a folder`);
      await this.#upload(signal).file(entry, place.parent, place.name);
    });
  }

  uploadDir(from: string, to: string, signal: AbortSignal): Promise<void> {
    return edge(`upload to ${to}`, signal, async () => {
      using source = OpenFolder.at(from);
      using target = this.#root().folder(to, { isCreated: true });
      await this.#upload(signal).folder(source, target);
    });
  }

  downloadFile(
    from: string,
    to: string,
    options: DownloadOptions & { readonly signal: AbortSignal },
  ): Promise<void> {
    return edge(`download of ${from}`, options.signal, async () => {
      using place = this.#root().place(from);
      using entry = place.name === null ? null : place.parent.pin(place.name);
      if (entry === null) throw refused(`${from} does not exist`);
      if (!entry.stats.isFile()) throw refused(`${from} is not a regular file`);
      mkdirSync(path.dirname(to), { recursive: true });
      using target = OpenFolder.at(path.dirname(to));
      await download(options).file(entry, target, Buffer.from(path.basename(to)));
    });
  }

  downloadDir(
    from: string,
    to: string,
    options: DownloadOptions & { readonly signal: AbortSignal },
  ): Promise<{ readonly skipped: readonly string[] }> {
    return edge(`download of ${from}`, options.signal, async () => {
      using source = this.#sourceFolder(from);
      mkdirSync(to, { recursive: true });
      using target = OpenFolder.at(to);
      const copy = download(options);
      await copy.folder(source, target);
      return { skipped: [...copy.skipped] };
    });
  }

  /** Links on the way are followed inside the sandbox; the named folder itself must be one. */
  #sourceFolder(from: string): OpenFolder {
    using place = this.#root().place(from);
    if (place.name === null) return this.#root().folder('/');
    using entry = place.parent.pin(place.name);
    if (entry === null) throw refused(`${from} does not exist`);
    if (!entry.stats.isDirectory()) throw refused(`${from} is not a folder`);
    return new OpenFolder(entry.reopen(constants.O_RDONLY | constants.O_DIRECTORY));
  }

  #root(): SandboxRoot {
    return new SandboxRoot(this.#rootPath());
  }

  #upload(signal: AbortSignal): TreeCopy {
    return new TreeCopy({
      links: 'copy',
      owner: this.#owner,
      modeMask: 0o7777,
      isExcluded: () => false,
      maxBytes: Number.MAX_SAFE_INTEGER,
      signal,
    });
  }
}

function download(options: DownloadOptions & { readonly signal: AbortSignal }): TreeCopy {
  const excluded = new ExcludedPaths(options.exclude ?? []);
  return new TreeCopy({
    links: 'skip',
    owner: null,
    modeMask: 0o777, // what an agent made setuid is not so on the host
    isExcluded: (name) => excluded.has(name),
    maxBytes: options.maxBytes ?? defaultMaxBytes,
    signal: options.signal,
  });
}

async function edge<T>(what: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  try {
    return await work();
  } catch (error) {
    signal.throwIfAborted();
    throw attribute(error, 'TRANSFER_FAILED', 'environment', what);
  }
}

function refused(why: string): RolloutError {
  return new RolloutError('TRANSFER_FAILED', why, { phase: 'environment', retryable: false });
}
