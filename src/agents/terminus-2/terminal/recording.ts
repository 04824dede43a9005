/**
 * The terminal as an asciicast (version 2), written on the host as output comes. Text is cut at characters, never inside one. The file has a
 * bound: a program that floods the terminal fills it once, then the recording says so and ends. A secret is never cut either: whoever cleans
 * the file finds it whole in one event.
 */
import { createWriteStream, type WriteStream } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import type { Clock } from '../../../core/clock.ts';
import type { Logger } from '../../../core/logger.ts';
import { replaceWrapped, wrappableOf } from '../../../trajectory/secret-spellings.ts';

/** The name of the recording in the host's log folder. */
export const recordingName = 'recording.cast';

/** Stands where a secret was. */
const redacted = '[REDACTED]';
const maxFileBytes = 16 * 1024 * 1024;
const closeMs = 3_000;

export interface RecordingOptions {
  readonly file: string;
  readonly width: number;
  readonly height: number;
  readonly secrets: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly maxBytes?: number;
}

export class Recording {
  readonly #stream: WriteStream;
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #maxBytes: number;
  readonly #secrets: readonly string[];
  readonly #closed: Promise<void>;
  #decoder = new StringDecoder('utf8');
  /** The end of the output so far, as long as a secret may begin with it. */
  #held = '';
  #bytes = 0;
  #isOver = false;

  constructor(options: RecordingOptions) {
    const { file, width, height, clock, logger } = options;
    this.#clock = clock;
    this.#startMs = clock.monotonicMs();
    this.#secrets = options.secrets;
    this.#maxBytes = options.maxBytes ?? maxFileBytes;
    this.#stream = createWriteStream(file, { mode: 0o644 });
    this.#closed = new Promise((resolve) => this.#stream.once('close', resolve));
    this.#stream.once('error', (error) => {
      this.#isOver = true; // a recording is never worth a trial
      logger.log('warn', 'the terminal cannot be recorded', { cause: error.message });
    });
    const timestamp = Math.floor(clock.now().getTime() / 1000);
    const env = { TERM: 'xterm-256color', SHELL: '/bin/bash' };
    this.#line({ version: 2, width, height, timestamp, env });
  }

  /** Nothing more is taken: output need not even be fetched. */
  get isOver(): boolean {
    return this.#isOver;
  }

  output(bytes: Uint8Array): void {
    const written = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const text = this.#held + this.#decoder.write(written);
    const end = text.length - unfinished(text, this.#secrets);
    this.#held = text.slice(end);
    if (end > 0) this.#event('o', text.slice(0, end));
  }

  /** The whole screen, drawn anew: after output was missed, or where none is fetched. */
  frame(screen: string, cursor: { readonly x: number; readonly y: number } | null = null): void {
    this.#releaseHeld();
    this.#decoder = new StringDecoder('utf8');
    const cleaned = replaceWrapped(screen, wrappableOf(this.#secrets), redacted);
    const rows = cleaned.replace(/\n$/, '').replaceAll('\n', '\r\n');
    const place = cursor === null ? '' : `\u001b[${cursor.y + 1};${cursor.x + 1}H`;
    this.#event('o', `\u001b[0m\u001b[H\u001b[2J${rows}\u001b[0m${place}`);
  }

  resize(width: number, height: number): void {
    this.#event('r', `${width}x${height}`);
  }

  mark(label: string): void {
    this.#event('m', label);
  }

  /** Resolves when the file is complete, or when a slow disk has had its time: the rest is written all the same. Idempotent. */
  async close(): Promise<void> {
    this.#releaseHeld();
    this.#isOver = true;
    this.#stream.end();
    const { promise, resolve } = Promise.withResolvers<undefined>();
    const late = setTimeout(() => resolve(undefined), closeMs);
    await Promise.race([this.#closed, promise]);
    clearTimeout(late);
  }

  #releaseHeld(): void {
    if (this.#held !== '') this.#event('o', this.#held);
    this.#held = '';
  }

  #event(kind: 'o' | 'r' | 'm', text: string): void {
    const seconds = (this.#clock.monotonicMs() - this.#startMs) / 1000;
    this.#line([Number(seconds.toFixed(6)), kind, text]);
  }

  #line(value: unknown): void {
    if (this.#isOver) return;
    const line = `${JSON.stringify(value)}\n`;
    this.#bytes += Buffer.byteLength(line);
    if (this.#bytes <= this.#maxBytes) {
      this.#stream.write(line);
      return;
    }
    this.#isOver = true;
    const seconds = (this.#clock.monotonicMs() - this.#startMs) / 1000;
    this.#stream.write(`${JSON.stringify([seconds, 'm', 'the recording is full'])}\n`);
  }
}

/** How much of the end of a text may be the beginning of a secret. */
function unfinished(text: string, secrets: readonly string[]): number {
  let most = 0;
  for (const secret of secrets)
    for (let length = Math.min(secret.length - 1, text.length); length > most; length -= 1)
      if (secret.charAt(length - 1) === text.at(-1) && text.endsWith(secret.slice(0, length)))
        most = length;
  return most;
}
