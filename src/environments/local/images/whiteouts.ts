/**
 * A layer's tar file marks removals by file names: `.wh.NAME` removes NAME of the layers below, `.wh..wh..opq` hides all of a
 * folder's lower content. The kernel's overlay wants a character device 0:0 and an extended attribute instead. Node has no
 * call for either, so they are written as a small tar stream that tar extracts over the layer.
 */
import { lstat, rm } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import * as tar from 'tar-stream';
import { RolloutError } from '../../../core/errors.ts';
import { runHostCommand } from '../host-command.ts';

const prefix = '.wh.';
const opaqueName = '.wh..wh..opq';
const reserved = '.wh..wh.';

/** Only root may set, and an overlay of root's reads, the trusted one; overlays in user namespaces read the other. */
function opaqueAttribute(): string {
  return process.getuid?.() === 0 ? 'trusted.overlay.opaque' : 'user.overlay.opaque';
}

export async function convertWhiteouts(dir: string, signal: AbortSignal): Promise<void> {
  const found = await runHostCommand(
    { file: 'find', args: [dir, '-name', `${prefix}*`, '-print0'] },
    signal,
  );
  const files = found.stdout.split('\0').filter((file) => file !== '');
  if (files.length === 0) return;
  const pack = tar.pack();
  const written = addMarks(pack, dir, files);
  const [marked, extracted] = await Promise.allSettled([
    written,
    runHostCommand(
      {
        file: 'tar',
        args: [
          ...['--extract', '--file=-', '--preserve-permissions', '--numeric-owner'],
          ...['--xattrs', `--xattrs-include=${opaqueAttribute()}`, `--directory=${dir}`],
        ],
        input: Readable.from(pack),
      },
      signal,
    ),
  ]);
  if (marked.status === 'rejected') throw marked.reason;
  if (extracted.status === 'rejected') throw extracted.reason;
  if (extracted.value.exitCode !== 0)
    throw new RolloutError('IMAGE_INVALID', 'the removals of a layer cannot be written', {
      phase: 'environment',
      detail: extracted.value.stderr,
      remedy: 'Keep the cache folder on a file system with devices and trusted attributes.',
    });
}

async function addMarks(pack: tar.Pack, dir: string, files: readonly string[]): Promise<void> {
  try {
    for (const file of files) {
      const folder = path.dirname(file);
      const name = path.basename(file);
      await rm(file, { recursive: true, force: true });
      if (name === opaqueName) await addOpaque(pack, dir, folder);
      else if (!name.startsWith(reserved)) {
        const target = path.join(folder, name.slice(prefix.length));
        const own = await lstat(target).catch(() => null);
        // The layer brings its own entry of that name: a folder then hides the lower one, a file replaces it anyway.
        if (own?.isDirectory() === true) await addOpaque(pack, dir, target);
        else if (own === null)
          pack.entry({
            name: path.relative(dir, target),
            type: 'character-device',
            mode: 0,
            uid: 0,
            gid: 0,
            devmajor: 0,
            devminor: 0,
          });
      }
    }
    pack.finalize();
  } catch (error) {
    pack.destroy(error as Error);
    throw error;
  }
}

async function addOpaque(pack: tar.Pack, dir: string, folder: string): Promise<void> {
  const stats = await lstat(folder);
  pack.entry({
    name: `${path.relative(dir, folder) || '.'}/`,
    type: 'directory',
    mode: stats.mode & 0o7777,
    uid: stats.uid,
    gid: stats.gid,
    mtime: stats.mtime,
    pax: { [`SCHILY.xattr.${opaqueAttribute()}`]: 'y' },
  });
}
