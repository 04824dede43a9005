import { createInterface } from 'node:readline/promises';
import type { Terminal } from './terminal.ts';

/** The terminal of this process. A reader that went away (`| head`) ends output, not the run. */
export function processTerminal(): Terminal {
  for (const stream of [process.stdout, process.stderr])
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  return {
    out: (text) => void process.stdout.write(`${text}\n`),
    err: (text) => void process.stderr.write(text),
    isInteractive: process.stderr.isTTY && process.env['TERM'] !== 'dumb',
    get columns() {
      return process.stderr.columns || 80;
    },
    async ask(question) {
      if (!process.stdin.isTTY || !process.stderr.isTTY) return null;
      const lines = createInterface({ input: process.stdin, output: process.stderr });
      try {
        return await lines.question(question);
      } finally {
        lines.close();
      }
    },
  };
}
