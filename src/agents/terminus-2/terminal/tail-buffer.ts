const firstBytes = 4096;

/** The last `limit` bytes of what is written to it. */
export class TailBuffer {
  readonly #limit: number;
  #bytes = Buffer.allocUnsafe(firstBytes);
  #length = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  write(bytes: Buffer): void {
    const kept = bytes.subarray(Math.max(0, bytes.length - this.#limit));
    if (this.#length + kept.length > this.#bytes.length) this.#makeRoom(kept.length);
    this.#length += kept.copy(this.#bytes, this.#length);
  }

  /** They are the buffer's own until the next write. */
  bytes(): Buffer {
    return this.#bytes.subarray(Math.max(0, this.#length - this.#limit), this.#length);
  }

  /** Twice the limit is held, so that each byte is moved at most once. */
  #makeRoom(length: number): void {
    const kept = this.bytes();
    const needed = kept.length + length;
    const target =
      needed <= this.#bytes.length / 2 || this.#bytes.length >= 2 * this.#limit
        ? this.#bytes
        : Buffer.allocUnsafe(Math.max(needed, Math.min(2 * this.#bytes.length, 2 * this.#limit)));
    this.#length = kept.copy(target);
    this.#bytes = target;
  }
}
