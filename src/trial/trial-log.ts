import { createWriteStream, type WriteStream } from 'node:fs';
import { finished } from 'node:stream/promises';
import type { Clock } from '../core/clock.ts';
import type { Logger, LogLevel } from '../core/logger.ts';
import { redactDocument, redactText } from './redact.ts';

/**
 * `trial.log`: every line of one trial, passed on to the logger of the run as well, without the secrets that it was told to hide. A full disk
 * loses lines, never the trial.
 */
export class TrialLog implements Logger {
  readonly #outer: Logger;
  readonly #clock: Clock;
  readonly #trialName: string;
  #stream: WriteStream | null = null;
  #secrets: readonly string[] = [];

  constructor(outer: Logger, options: { readonly clock: Clock; readonly trialName: string }) {
    this.#outer = outer;
    this.#clock = options.clock;
    this.#trialName = options.trialName;
  }

  open(file: string): void {
    this.#stream = createWriteStream(file, { flags: 'a' });
    this.#stream.on('error', () => undefined);
  }

  /** From now on these are left out of every line; they replace those of an earlier call. */
  hide(secrets: readonly string[]): void {
    this.#secrets = secrets;
  }

  log(level: LogLevel, text: string, about?: Readonly<Record<string, unknown>>): void {
    const message = redactText(text, this.#secrets);
    const fields = about && redactDocument(about, this.#secrets);
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
