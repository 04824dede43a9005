/** Where lines go that must not be lost: to whoever reads the output, or to the end of a file. */
import { open, type FileHandle } from 'node:fs/promises';
import { boundary } from '../core/errors.ts';
import type { Terminal } from './terminal.ts';

export interface LineOutput extends AsyncDisposable {
  /** Each with its line break. They are kept when it resolves; rejects when that cannot be. */
  write(lines: readonly string[]): Promise<void>;
}

/** `file` null = the terminal. CONFIG_INVALID for a file that cannot be written: nothing has been collected then. */
export async function openLineOutput(
  file: string | null,
  terminal: Pick<Terminal, 'handOver'>,
): Promise<LineOutput> {
  if (file === null)
    return {
      async write(lines) {
        for (const line of lines) await terminal.handOver(line);
      },
      [Symbol.asyncDispose]: () => Promise.resolve(),
    };
  const handle = await boundary(
    { code: 'CONFIG_INVALID', phase: 'config', what: `opening ${file}` },
    async () => await openForLines(file),
  );
  return {
    async write(lines) {
      // One by one: a batch may be longer than a text can be.
      for (const line of lines) await handle.appendFile(line);
      await handle.sync();
    },
    [Symbol.asyncDispose]: () => handle.close(),
  };
}

/** A line that a crash cut short does not swallow the next one. */
async function openForLines(file: string): Promise<FileHandle> {
  const handle = await open(file, 'a+');
  try {
    const { size } = await handle.stat();
    const last = Buffer.alloc(1);
    if (size > 0) await handle.read(last, 0, 1, size - 1);
    if (size > 0 && last.toString() !== '\n') await handle.appendFile('\n');
    return handle;
  } catch (error) {
    await handle.close();
    throw error;
  }
}
