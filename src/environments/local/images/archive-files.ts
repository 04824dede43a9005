import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { TarIndex } from '../../shared/tar-index.ts';

/** The files of an image archive, whether it is a tar file or an unpacked OCI layout. Names are relative, with `/`. */
export interface ArchiveFiles {
  /** null when there is no such file. */
  stream(name: string): Promise<Readable | null>;
}

const maxDocumentBytes = 16 * 1024 * 1024;

export async function openArchiveFiles(location: string): Promise<ArchiveFiles> {
  const stats = await stat(location);
  return stats.isDirectory() ? folderFiles(location) : tarFiles(await TarIndex.read(location));
}

/** A small document; null when absent. Rejects beyond 16 MiB. */
export async function readDocument(files: ArchiveFiles, name: string): Promise<string | null> {
  const stream = await files.stream(name);
  if (stream === null) return null;
  let size = 0;
  stream.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size > maxDocumentBytes) stream.destroy(new Error(`${name} is too large`));
  });
  return (await buffer(stream)).toString('utf8');
}

function tarFiles(index: TarIndex): ArchiveFiles {
  return {
    stream: (name) => {
      const member = index.member(name);
      return Promise.resolve(member === null ? null : index.stream(member));
    },
  };
}

function folderFiles(folder: string): ArchiveFiles {
  return {
    stream: async (name) => {
      const file = path.join(folder, name);
      if (!file.startsWith(`${folder}/`)) return null; // a name with `..` is not one of ours
      const stats = await stat(file).catch(() => null);
      if (stats?.isFile() !== true) return null;
      return stats.size === 0
        ? Readable.from([])
        : createReadStream(file, { highWaterMark: 262_144 });
    },
  };
}
