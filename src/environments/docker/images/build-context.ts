import { constants, createReadStream } from 'node:fs';
import { lstat, open, readdir, readFile, readlink } from 'node:fs/promises';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import * as tar from 'tar-stream';
import { DockerIgnore } from './docker-ignore.ts';

/** Files put over those of the folder, by path in the context. */
export type ContextOverlay = Readonly<Record<string, string>>;

/** A build context as a tar stream, read while it is sent; `.dockerignore` is honoured, the Dockerfile always goes along. */
export function packContext(
  folder: string,
  options: { readonly dockerfile: string; readonly overlay: ContextOverlay },
): Readable {
  const { dockerfile, overlay } = options;
  const pack = tar.pack();
  void (async () => {
    const ignoreText = await readFile(path.join(folder, '.dockerignore'), 'utf8').catch(() => '');
    const alwaysSent = new Set([dockerfile, '.dockerignore']);
    await packFolder(
      pack,
      { folder, ignore: new DockerIgnore(ignoreText), overlay, alwaysSent },
      '',
    );
    for (const [name, content] of Object.entries(overlay))
      pack.entry({ ...byRoot, name, mode: 0o644 }, content);
    pack.finalize();
  })().catch((error: unknown) => pack.destroy(error as Error));
  return pack as unknown as Readable;
}

interface Packing {
  readonly folder: string;
  readonly ignore: DockerIgnore;
  readonly overlay: ContextOverlay;
  readonly alwaysSent: ReadonlySet<string>;
}

const byRoot = { uid: 0, gid: 0, uname: '', gname: '' } as const;

async function packFolder(pack: tar.Pack, packing: Packing, prefix: string): Promise<void> {
  const names = (await readdir(path.join(packing.folder, prefix))).sort();
  for (const base of names) {
    const name = prefix + base;
    if (name in packing.overlay) continue;
    const full = path.join(packing.folder, name);
    const stats = await lstat(full);
    const isOut = packing.ignore.leavesOut(name) && !packing.alwaysSent.has(name);
    if (stats.isDirectory()) {
      if (isOut && !packing.ignore.hasExceptions && !holdsSent(packing, name)) continue;
      if (!isOut)
        pack.entry({ ...byRoot, name: `${name}/`, type: 'directory', mode: stats.mode & 0o7777 });
      await packFolder(pack, packing, `${name}/`);
    } else if (isOut) continue;
    else if (stats.isSymbolicLink())
      pack.entry({ ...byRoot, name, type: 'symlink', linkname: await readlink(full) });
    else if (stats.isFile()) await packFile(pack, full, name);
  }
}

function holdsSent(packing: Packing, folder: string): boolean {
  return [...packing.alwaysSent].some((name) => name.startsWith(`${folder}/`));
}

async function packFile(pack: tar.Pack, full: string, name: string): Promise<void> {
  const file = await open(full, constants.O_RDONLY | constants.O_NOFOLLOW);
  const { size, mode, mtime } = await file.stat();
  const entry = pack.entry({ ...byRoot, name, size, mode: mode & 0o7777, mtime });
  if (size === 0) {
    entry.end(Buffer.alloc(0));
    await file.close();
    return;
  }
  await pipeline(createReadStream('', { fd: file, end: size - 1 }), entry);
}
