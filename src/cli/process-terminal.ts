import { createInterface } from 'node:readline/promises';
import { RolloutError } from '../core/errors.ts';
import type { Terminal } from './terminal.ts';

/** The terminal of this process. A reader that went away (`| head`) ends output, not the run. */
export function processTerminal(): Terminal {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  return {
    out: (text) => void process.stdout.write(`${text}\n`),
    async handOver(text) {
      const written = Promise.withResolvers<undefined>();
      process.stdout.write(text, (error) => {
        if (error) written.reject(readerGone(error));
        else written.resolve(undefined);
      });
      await written.promise;
    },
    err: (text) => void process.stderr.write(text),
    isInteractive: process.stderr.isTTY && process.env['TERM'] !== 'dumb',
    get columns() {
      return process.stderr.columns || 80;
    },
    async ask(question, signal) {
      if (!process.stdin.isTTY || !process.stderr.isTTY) return null;
      const lines = createInterface({ input: process.stdin, output: process.stderr });
      // While a line is edited the terminal makes no signal of Ctrl+C.
      lines.on('SIGINT', () => process.kill(process.pid, 'SIGINT'));
      try {
        return await lines.question(question, { signal });
      } catch (error) {
        signal.throwIfAborted();
        throw new RolloutError('CANCELLED', 'the question was not answered', {
          phase: 'config',
          cause: error,
        });
      } finally {
        lines.close();
      }
    },
  };
}

function readerGone(cause: Error): RolloutError {
  return new RolloutError('CANCELLED', `nobody takes what is printed: ${cause.message}`, {
    ...{ phase: 'queue', cause },
    remedy: 'Read to the end, or write to a file.',
  });
}
