/**
 * Frames of an attached stream without a terminal: one byte stream number (1 stdout, 2 stderr), three zero bytes, four bytes of
 * length (big-endian), payload. Pieces are passed on as they come; a frame is never held back until it is whole.
 */
export class FrameReader {
  readonly #onPayload: (stream: 'stdout' | 'stderr', bytes: Buffer) => void;
  readonly #header = Buffer.alloc(8);
  #headerFilled = 0;
  #left = 0;

  constructor(onPayload: (stream: 'stdout' | 'stderr', bytes: Buffer) => void) {
    this.#onPayload = onPayload;
  }

  write(chunk: Buffer): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#left === 0) {
        const taken = Math.min(8 - this.#headerFilled, chunk.length - at);
        chunk.copy(this.#header, this.#headerFilled, at, at + taken);
        this.#headerFilled += taken;
        at += taken;
        if (this.#headerFilled < 8) return;
        this.#left = this.#header.readUInt32BE(4);
        if (this.#left === 0) this.#headerFilled = 0;
      } else {
        const taken = Math.min(this.#left, chunk.length - at);
        const stream = this.#header[0] === 2 ? 'stderr' : 'stdout';
        this.#onPayload(stream, chunk.subarray(at, at + taken));
        this.#left -= taken;
        at += taken;
        if (this.#left === 0) this.#headerFilled = 0;
      }
    }
  }
}
