/**
 * An image's layers put together in one folder, for a sandbox that cannot have an overlay: a copy of its own (blocks are shared where
 * the file system can), since a hard link would let it write into the image. Removals are carried out layer by layer.
 */
import { lstat, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import * as tar from 'tar-stream';
import { RolloutError } from '../../../core/errors.ts';
import { runHostCommand } from '../host-command.ts';
import type { StoredImage } from '../images/image-store.ts';

/** `root` exists and is empty. ENVIRONMENT_START_FAILED, DISK_FULL; what is half made is thrown away by the caller. */
export async function mergeLayers(
  image: StoredImage,
  root: string,
  signal: AbortSignal,
): Promise<void> {
  for (const layer of image.layers.toReversed()) {
    const dir = path.join(image.layersDir, layer);
    const found = await makeWay(dir, root, signal);
    for (const folder of await opaqueFolders(dir, found.merged, signal))
      await emptyFolder(path.join(root, folder));
    await copy(dir, root, signal);
    for (const file of found.removals) await rm(path.join(root, file), { force: true });
  }
}

interface Found {
  /** Places of the layer's marks that say "removed". */
  readonly removals: string[];
  /** Folders that the layer and the root both have. */
  readonly merged: string[];
}

/** Takes out of the root what the layer removes, or replaces by something of another kind. Links are never followed. */
async function makeWay(dir: string, root: string, signal: AbortSignal): Promise<Found> {
  const found: Found = { removals: [], merged: [] };
  const visit = async (folder: string, isNew: boolean): Promise<void> => {
    signal.throwIfAborted();
    for (const entry of await readdir(path.join(dir, folder), { withFileTypes: true })) {
      const place = path.join(folder, entry.name);
      const target = path.join(root, place);
      const isRemoval =
        entry.isCharacterDevice() && (await lstat(path.join(dir, place))).rdev === 0;
      const old = isNew ? null : await lstat(target).catch(() => null);
      if (isRemoval) found.removals.push(place);
      const isMerged = entry.isDirectory() && old?.isDirectory() === true;
      if (old !== null && !isMerged && (isRemoval || entry.isDirectory() || old.isDirectory()))
        await rm(target, { recursive: true, force: true });
      if (isMerged) found.merged.push(place);
      if (entry.isDirectory()) await visit(place, !isMerged);
    }
  };
  await visit('', false);
  return found;
}

/** Those folders of a layer that hide what lies below them. Node reads no extended attributes; a tar header shows them. */
async function opaqueFolders(
  dir: string,
  folders: readonly string[],
  signal: AbortSignal,
): Promise<readonly string[]> {
  if (folders.length === 0) return [];
  const result = await runHostCommand(
    {
      file: 'tar',
      args: [
        ...['--create', '--file=-', '--format=posix', '--no-recursion', `--directory=${dir}`],
        ...['--xattrs', '--xattrs-include=*.overlay.opaque', '--null', '--files-from=-'],
      ],
      input: Buffer.from(folders.map((folder) => `./${folder}\0`).join('')),
    },
    signal,
  );
  if (result.exitCode !== 0) throw notCopied(result.stderr);
  const found: string[] = [];
  const extract = tar.extract();
  Readable.from([Buffer.from(result.stdout)]).pipe(extract);
  for await (const entry of extract) {
    const attributes = Object.keys(entry.header.pax ?? {});
    if (attributes.some((name) => name.endsWith('.overlay.opaque')))
      found.push(path.normalize(entry.header.name));
    entry.resume();
  }
  return found;
}

async function emptyFolder(dir: string): Promise<void> {
  for (const name of await readdir(dir))
    await rm(path.join(dir, name), { recursive: true, force: true });
}

async function copy(from: string, to: string, signal: AbortSignal): Promise<void> {
  const args = ['-a', '--reflink=auto', '--remove-destination', '--', `${from}/.`, `${to}/`];
  const result = await runHostCommand({ file: 'cp', args }, signal);
  if (result.exitCode !== 0) throw notCopied(result.stderr);
}

function notCopied(stderr: string): RolloutError {
  if (stderr.includes('No space left on device'))
    return new RolloutError('DISK_FULL', "no space left for a copy of the image's files", {
      phase: 'environment',
      remedy: 'Free disk space under the state folder, or run fewer trials at once.',
    });
  const detail = stderr.trim();
  return new RolloutError(
    'ENVIRONMENT_START_FAILED',
    `the image's files cannot be copied: ${detail.split('\n').at(-1) ?? ''}`,
    {
      phase: 'environment',
      detail,
      remedy: 'Files that their owner cannot read need root, user namespaces, or another image.',
    },
  );
}
