import { createWriteStream, type WriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import type { Clock } from '../core/clock.ts';
import type { Logger, LogLevel } from '../core/logger.ts';

const ranks: Readonly<Record<LogLevel, number>> = { debug: 0, info: 1, warn: 2, error: 3 };

/** Appends JSON lines to a file. A full disk loses log lines, never a trial. */
export class FileLogger implements Logger, AsyncDisposable {
  readonly #stream: WriteStream;
  readonly #level: LogLevel;
  readonly #clock: Clock;

  constructor(file: string, options: { readonly level: LogLevel; readonly clock: Clock }) {
    this.#stream = createWriteStream(file, { flags: 'a' });
    this.#stream.on('error', () => undefined);
    this.#level = options.level;
    this.#clock = options.clock;
  }

  log(level: LogLevel, message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    if (ranks[level] < ranks[this.#level] || this.#stream.destroyed) return;
    const time = this.#clock.now().toISOString();
    this.#stream.write(`${JSON.stringify({ time, level, message, ...fields })}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stream.end();
    await finished(this.#stream).catch(() => undefined);
  }
}
