import { Buffer } from 'node:buffer';
import { StringDecoder } from 'node:string_decoder';

/** Splits one output stream of a shared shell at markers, keeps the first bytes and passes all of them on. */
export class MarkedStream {
  readonly #limit: number;
  readonly #onText: (text: string) => void;
  readonly #decoder = new StringDecoder('utf8');
  #marker: Buffer;
  #pending: Buffer = Buffer.alloc(0);
  #kept: Buffer[] = [];
  #keptBytes = 0;
  #isTruncated = false;
  #onMarker: (line: string) => void;

  constructor(options: {
    readonly marker: string;
    readonly limit: number;
    readonly onText: (text: string) => void;
    /** Called with the rest of the line behind each marker. */
    readonly onMarker: (line: string) => void;
  }) {
    this.#marker = Buffer.from(options.marker);
    this.#limit = options.limit;
    this.#onText = options.onText;
    this.#onMarker = options.onMarker;
  }

  get isTruncated(): boolean {
    return this.#isTruncated;
  }

  text(): string {
    return Buffer.concat(this.#kept).toString('utf8');
  }

  /** Feeds bytes; returns what came behind the marker line that made `onMarker` answer, which belongs to the next command. */
  write(chunk: Buffer): void {
    this.#pending = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    for (;;) {
      const at = this.#pending.indexOf(this.#marker);
      if (at === -1) break;
      const lineEnd = this.#pending.indexOf(0x0a, at);
      if (lineEnd === -1) {
        this.#emit(this.#pending.subarray(0, at));
        this.#pending = this.#pending.subarray(at);
        return;
      }
      this.#emit(this.#pending.subarray(0, at));
      const line = this.#pending.toString('utf8', at + this.#marker.length, lineEnd);
      this.#pending = this.#pending.subarray(lineEnd + 1);
      this.#onMarker(line.trim());
    }
    // The end of what we have may be the beginning of a marker: hold back just that much.
    const held = Math.min(this.#pending.length, this.#marker.length - 1);
    const cut = this.#pending.length - this.#heldLength(held);
    this.#emit(this.#pending.subarray(0, cut));
    this.#pending = this.#pending.subarray(cut);
  }

  #heldLength(atMost: number): number {
    for (let length = atMost; length > 0; length -= 1) {
      const tail = this.#pending.subarray(this.#pending.length - length);
      if (tail.equals(this.#marker.subarray(0, length))) return length;
    }
    return 0;
  }

  #emit(bytes: Buffer): void {
    if (bytes.length === 0) return;
    const room = this.#limit - this.#keptBytes;
    if (bytes.length > room) this.#isTruncated = true;
    if (room > 0) {
      const kept = bytes.subarray(0, room);
      this.#kept.push(Buffer.from(kept));
      this.#keptBytes += kept.length;
    }
    this.#onText(this.#decoder.write(bytes));
  }
}
