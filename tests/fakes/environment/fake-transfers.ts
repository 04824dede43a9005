import { lstat, mkdir, readFile, readdir, readlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { RolloutError } from '../../../src/core/errors.ts';
import type { DownloadOptions } from '../../../src/environments/environment.ts';
import { ExcludedPaths } from '../../../src/environments/shared/excluded-paths.ts';
import type { FakeFiles } from './fake-files.ts';

const defaultMaxBytes = 4 * 1024 ** 3;

export async function uploadFile(files: FakeFiles, from: string, to: string): Promise<void> {
  const bytes = await onHost(from, () => readFile(from));
  const { mode } = await lstat(from);
  await putFile(files, to, { bytes, mode });
}

export async function uploadDir(files: FakeFiles, from: string, to: string): Promise<void> {
  const entries = await onHost(from, () => readdir(from, { withFileTypes: true }));
  await files.mkdir(to, { recursive: true });
  for (const entry of entries) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.isDirectory()) {
      await uploadDir(files, source, target);
      await files.chmod(target, (await lstat(source)).mode & 0o7777);
    } else if (entry.isSymbolicLink()) {
      await files.rm(target, { force: true });
      await files.symlink(await readlink(source), target);
    } else if (entry.isFile()) await uploadFile(files, source, target);
  }
}

export async function downloadFile(
  files: FakeFiles,
  paths: { readonly from: string; readonly to: string },
  options: DownloadOptions = {},
): Promise<void> {
  const { from, to } = paths;
  const kind = await kindOf(files, from);
  if (kind !== 'file') throw failed(`${from} is ${kind ?? 'missing'}, not a file`);
  const bytes = await files.readFileBuffer(from);
  if (bytes.length > (options.maxBytes ?? defaultMaxBytes)) throw failed(`${from} is too large`);
  await mkdir(dirname(to), { recursive: true });
  await writeFile(to, bytes);
}

export async function downloadDir(
  files: FakeFiles,
  paths: { readonly from: string; readonly to: string },
  options: DownloadOptions = {},
): Promise<{ readonly skipped: readonly string[] }> {
  const kind = await kindOf(files, paths.from);
  if (kind !== 'folder') throw failed(`${paths.from} is ${kind ?? 'missing'}, not a folder`);
  const copy = new TreeCopy(files, options);
  await copy.folder(paths.from, paths.to, '');
  return { skipped: copy.skipped };
}

/** Copies a folder out, regular files and folders only. */
class TreeCopy {
  readonly skipped: string[] = [];
  readonly #files: FakeFiles;
  readonly #excluded: ExcludedPaths;
  #leftBytes: number;

  constructor(files: FakeFiles, { exclude = [], maxBytes = defaultMaxBytes }: DownloadOptions) {
    this.#files = files;
    this.#excluded = new ExcludedPaths(exclude);
    this.#leftBytes = maxBytes;
  }

  async folder(from: string, to: string, relative: string): Promise<void> {
    await mkdir(to, { recursive: true });
    for (const name of await this.#files.readdir(from)) {
      const path = relative === '' ? name : `${relative}/${name}`;
      if (this.#excluded.has(path)) continue;
      await this.#entry(`${from}/${name}`, join(to, name), path);
    }
  }

  async #entry(from: string, to: string, relative: string): Promise<void> {
    const kind = await kindOf(this.#files, from);
    if (kind === 'folder') await this.folder(from, to, relative);
    else if (kind === 'file') {
      const bytes = await this.#files.readFileBuffer(from);
      this.#leftBytes -= bytes.length;
      if (this.#leftBytes < 0) throw failed('the folder is too large');
      await writeFile(to, bytes);
    } else this.skipped.push(relative);
  }
}

async function putFile(
  files: FakeFiles,
  to: string,
  { bytes, mode }: { readonly bytes: Uint8Array; readonly mode: number },
): Promise<void> {
  if ((await kindOf(files, to)) === 'folder') throw failed(`${to} is a folder`);
  await files.mkdir(dirname(to), { recursive: true });
  await files.rm(to, { force: true });
  await files.writeFile(to, bytes);
  await files.chmod(to, mode & 0o7777);
  files.setOwner(to, { uid: 0, gid: 0 });
}

async function kindOf(
  files: FakeFiles,
  path: string,
): Promise<'file' | 'folder' | 'link' | 'pipe' | null> {
  try {
    const stat = await files.lstat(path);
    if (stat.isSymbolicLink) return 'link';
    if (stat.isDirectory) return 'folder';
    return files.isPipe(path) ? 'pipe' : 'file';
  } catch {
    return null; // just-bash has one error for every path that leads nowhere
  }
}

async function onHost<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw failed(`${path} cannot be read on the host`, error);
  }
}

function failed(message: string, cause?: unknown): RolloutError {
  return new RolloutError('TRANSFER_FAILED', message, { phase: 'environment', cause });
}
