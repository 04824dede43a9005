import type { FileHandle } from 'node:fs/promises';

/** Of the first piece: most files are no longer. */
const firstBytes = 16 * 1024;

/**
 * The bytes of an open file from its beginning, in pieces of up to `longestBytes`; each is good until the next one is asked for. A small file takes a small
 * buffer: those of a megabyte for files of some bytes keep the garbage collector busier than anything else in a trial.
 */
export async function* fileChunks(
  handle: FileHandle,
  longestBytes: number,
): AsyncGenerator<Buffer, undefined, undefined> {
  let buffer = Buffer.allocUnsafe(Math.min(firstBytes, longestBytes));
  for (let position = 0; ;) {
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, position);
    if (bytesRead === 0) return undefined;
    position += bytesRead;
    yield buffer.subarray(0, bytesRead);
    if (bytesRead === buffer.length && bytesRead < longestBytes)
      buffer = Buffer.allocUnsafe(longestBytes);
  }
}
