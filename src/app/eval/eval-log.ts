import { createWriteStream, type WriteStream } from 'node:fs';
import type { Clock } from '../../core/clock.ts';
import type { SecretMask } from '../../telemetry/secret-mask.ts';

/** `logs.txt`: what happened, for people. Only its owner may read it, and no known secret is in it. */
export class EvalLog implements AsyncDisposable {
  readonly #stream: WriteStream;
  readonly #mask: SecretMask;
  readonly #clock: Clock;

  constructor(path: string, parts: { readonly mask: SecretMask; readonly clock: Clock }) {
    this.#stream = createWriteStream(path, { flags: 'a', mode: 0o600 });
    // The journal is what counts: a log that cannot be written stops nothing.
    this.#stream.on('error', () => undefined);
    this.#mask = parts.mask;
    this.#clock = parts.clock;
  }

  write(text: string): void {
    this.#stream.write(`${this.#clock.now().toISOString()} ${this.#mask.mask(text)}\n`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#stream.destroyed) return;
    await new Promise<void>((resolve) => {
      this.#stream.once('close', () => resolve());
      this.#stream.end();
    });
  }
}
