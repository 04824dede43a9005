/** A body in chunks, cut anywhere. Extensions and trailers are read, within limits, and dropped. */
import { headLimitBytes } from './message-head.ts';
import { invalidAnswer } from './upstream-error.ts';

/** With its extensions. */
const longestSizeLine = 1024;
const sizeLine = /^([0-9A-Fa-f]{1,12})(?:[ \t]*;[^\u0000-\u0008\u000a-\u001f\u007f]*)?$/;
const trailerLine = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[^\u0000-\u0008\u000a-\u001f\u007f]*$/;

type Part = 'size' | 'bytes' | 'bytes-end' | 'trailer';

export class ChunkedBody {
  #part: Part = 'size';
  /** Of the line that is not complete yet. */
  #held = '';
  #left = 0;
  #trailerBytes = 0;
  #isDone = false;

  get isDone(): boolean {
    return this.#isDone;
  }

  /** What of the body begins at `from` is put to `pieces`; answers where its reading stopped: the end of the body, or of the bytes. */
  take(bytes: Buffer, from: number, pieces: Buffer[]): number {
    let at = from;
    while (at < bytes.length && !this.#isDone) {
      if (this.#part === 'bytes') {
        const end = Math.min(bytes.length, at + this.#left);
        pieces.push(bytes.subarray(at, end));
        this.#left -= end - at;
        at = end;
        if (this.#left === 0) this.#part = 'bytes-end';
        continue;
      }
      const feed = bytes.indexOf(0x0a, at);
      const end = feed === -1 ? bytes.length : feed + 1;
      const line = this.#held + bytes.toString('latin1', at, end);
      at = end;
      if (line.length > longestSizeLine && this.#part !== 'trailer')
        throw invalidAnswer('a chunk begins with no size');
      if (line.length + this.#trailerBytes > headLimitBytes)
        throw invalidAnswer('the trailers of the answer are too long');
      if (feed === -1) this.#held = line;
      else {
        this.#held = '';
        if (!line.endsWith('\r\n')) throw invalidAnswer('a line of the chunks ends in no CRLF');
        this.#line(line.slice(0, -2));
      }
    }
    return at;
  }

  #line(line: string): void {
    switch (this.#part) {
      case 'size': {
        const size = sizeLine.exec(line)?.[1];
        if (size === undefined) throw invalidAnswer('a chunk begins with no size');
        this.#left = Number.parseInt(size, 16);
        this.#part = this.#left === 0 ? 'trailer' : 'bytes';
        return;
      }
      case 'bytes-end':
        if (line !== '') throw invalidAnswer('a chunk is longer than its size');
        this.#part = 'size';
        return;
      case 'trailer':
        this.#trailerBytes += line.length + 2;
        if (line === '') this.#isDone = true;
        else if (!trailerLine.test(line)) throw invalidAnswer('a trailer is no header');
        return;
      case 'bytes':
        return;
    }
  }
}
