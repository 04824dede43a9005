import type { ProcessRequest } from '../environment.ts';

interface Piece {
  readonly stream: 'stdout' | 'stderr';
  readonly bytes: Uint8Array;
}

/** More than is on its way before a program is known to run; what never begins may write for ever. */
export const maxHeldBytes = 16 * 1024 * 1024;

/** Output of a program that is being started: held until it is known to be the program's own, then passed on as it comes. */
export class HeldOutput {
  readonly #onOutput: ProcessRequest['onOutput'];
  #held: Piece[] | null = [];
  #heldBytes = 0;
  #isListening = true;
  /** Milliseconds, monotonic, of the last byte. */
  lastByteAt = performance.now();

  constructor(onOutput: ProcessRequest['onOutput']) {
    this.#onOutput = onOutput;
  }

  write(stream: 'stdout' | 'stderr', bytes: Uint8Array): void {
    if (bytes.length === 0 || !this.#isListening) return;
    this.lastByteAt = performance.now();
    if (this.#held === null) this.#onOutput(stream, bytes);
    else if (this.#heldBytes + bytes.length <= maxHeldBytes) {
      this.#heldBytes += bytes.length;
      this.#held.push({ stream, bytes: Buffer.from(bytes) }); // a copy: the chunk's own buffer is pooled
    }
  }

  /** What is held, as text: why a program did not start. */
  text(): string {
    return Buffer.concat((this.#held ?? []).map(({ bytes }) => bytes)).toString('utf8');
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = null;
    for (const { stream, bytes } of held) this.#onOutput(stream, bytes);
  }

  /** What comes from now on is dropped. */
  ignoreRest(): void {
    this.#isListening = false;
  }
}
