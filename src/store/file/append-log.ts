import type { FileHandle } from 'node:fs/promises';

interface Waiting {
  readonly line: string;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Appends lines to one open file; each call resolves once its line is synced to the disk. Lines that arrive during a sync share
 * the next one. A write that fails is cut off again, so that a full disk never leaves half a line before a later whole one.
 */
export class AppendLog {
  readonly #file: FileHandle;
  #sizeBytes: number;
  #waiting: Waiting[] = [];
  #flushing: Promise<void> | null = null;

  constructor(file: FileHandle, sizeBytes: number) {
    this.#file = file;
    this.#sizeBytes = sizeBytes;
  }

  async append(line: string): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<undefined>();
    this.#waiting.push({ line, resolve: () => resolve(undefined), reject });
    this.#flushing ??= this.#flush();
    await promise;
  }

  /** Waits for what was appended, then closes the file. */
  async close(): Promise<void> {
    await this.#flushing;
    await this.#file.close();
  }

  async #flush(): Promise<void> {
    await Promise.resolve(); // callers of the same turn share this sync
    while (this.#waiting.length > 0) {
      const batch = this.#waiting;
      this.#waiting = [];
      try {
        await this.#write(Buffer.from(batch.map(({ line }) => line).join('')));
        for (const { resolve } of batch) resolve();
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
    }
    this.#flushing = null;
  }

  async #write(bytes: Buffer): Promise<void> {
    // Also drops what an earlier failed write left behind.
    await this.#file.truncate(this.#sizeBytes);
    let written = 0;
    while (written < bytes.length) {
      const at = this.#sizeBytes + written;
      const result = await this.#file.write(bytes, written, bytes.length - written, at);
      written += result.bytesWritten;
    }
    await this.#file.datasync();
    this.#sizeBytes += bytes.length;
  }
}
