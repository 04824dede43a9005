import { createWriteStream, type WriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import type { Clock } from '../core/clock.ts';
import type { Logger, LogLevel } from '../core/logger.ts';

/** `trial.log`: every line of one trial, passed on to the logger of the run as well. A full disk loses lines, never the trial. */
export class TrialLog implements Logger {
  readonly #outer: Logger;
  readonly #clock: Clock;
  readonly #trialName: string;
  #stream: WriteStream | null = null;

  constructor(outer: Logger, options: { readonly clock: Clock; readonly trialName: string }) {
    this.#outer = outer;
    this.#clock = options.clock;
    this.#trialName = options.trialName;
  }

  open(file: string): void {
    this.#stream = createWriteStream(file, { flags: 'a' });
    this.#stream.on('error', () => undefined);
  }

  log(level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>): void {
    const rest = fields === undefined ? '' : ` ${JSON.stringify(fields)}`;
    this.#stream?.write(
      `${this.#clock.now().toISOString()} ${level.toUpperCase()} ${message}${rest}\n`,
    );
    this.#outer.log(level, message, { trial: this.#trialName, ...fields });
  }

  /** Idempotent. */
  async close(): Promise<void> {
    const stream = this.#stream;
    this.#stream = null;
    if (stream === null) return;
    stream.end();
    await finished(stream).catch(() => undefined);
  }
}
