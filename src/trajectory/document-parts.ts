/**
 * A trajectory read as a stream: its fields and, one by one, its steps, in the order of the document, each as its own JSON text. No more than one part
 * is in memory, so that a document of any size can be shown or cleaned. Only the outline is checked here; a part is checked by who parses it.
 */
import { open, type FileHandle } from 'node:fs/promises';
import { fileChunks } from '../core/file-chunks.ts';
import { RolloutError } from '../core/errors.ts';

export interface DocumentPart {
  /** null = a step. */
  readonly field: string | null;
  /** JSON text as it stands in the document. */
  readonly text: string;
}

/** Longer than any step can be; what anybody may have written must not take all memory. */
export const maxPartBytes = 64 * 1024 * 1024;

const chunkBytes = 256 * 1024;

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a];
const openers = new Set([0x5b, 0x7b]);
const closers = new Set([0x5d, 0x7d]);
const blanks = new Set([0x20, 0x09, 0x0a, 0x0d]);
const openList = 0x5b;
/** Bytes that mean something inside a string, and inside an object or a list; nearly all others of a document are passed over. */
const tellingInString = bytesOf([quote, backslash]);
const tellingInside = bytesOf([quote, ...openers, ...closers]);

/** TRAJECTORY_INVALID when the file is not one JSON object, or a part of it is over {@link maxPartBytes}. */
export async function* readParts(file: string, handle?: FileHandle): AsyncGenerator<DocumentPart> {
  const owned = handle === undefined ? await open(file, 'r') : null;
  const source = handle ?? owned;
  try {
    if (source === null) return;
    const splitter = new PartSplitter(file);
    for await (const chunk of fileChunks(source, chunkBytes)) yield* splitter.push(chunk);
    splitter.end();
  } finally {
    await owned?.close();
  }
}

/** Parses a part; TRAJECTORY_INVALID when it is not JSON. */
export function parsePart(file: string, part: DocumentPart): unknown {
  try {
    return JSON.parse(part.text) as unknown;
  } catch (error) {
    throw broken(file, `${part.field ?? 'a step'} is not JSON`, error);
  }
}

/**
 * Where the reading stands: before the document, at a key, at the colon behind it, at a value, behind a value, or behind the document. `isInSteps`
 * says whether the values are the items of `steps` or the fields' own.
 */
type Place = 'start' | 'key' | 'colon' | 'value' | 'behind' | 'end';

class PartSplitter {
  readonly #file: string;
  #place: Place = 'start';
  #isInSteps = false;
  /** An object may end before its first key, and a list before its first value. */
  #isFirst = true;
  #field = '';
  /** Bytes of the key or value being read, from earlier chunks; null = none is being read. */
  #earlier: Buffer[] | null = null;
  #earlierBytes = 0;
  #depth = 0;
  #isInString = false;
  #isEscaped = false;

  constructor(file: string) {
    this.#file = file;
  }

  *push(chunk: Buffer): Generator<DocumentPart> {
    let from = 0;
    for (let index = 0; index < chunk.length; index += 1) {
      const byte = chunk[index] ?? 0;
      if (this.#earlier === null) {
        if (blanks.has(byte)) continue;
        if (!this.#begin(byte)) continue;
        this.#earlier = [];
        this.#earlierBytes = 0;
        from = index;
      }
      const ended = this.#advance(byte);
      if (ended === 'no') {
        index = this.#lastIdle(chunk, index);
        continue;
      }
      const end = ended === 'after' ? index + 1 : index;
      const text = Buffer.concat([...this.#earlier, chunk.subarray(from, end)]).toString('utf8');
      this.#earlier = null;
      if (ended === 'before') index -= 1; // the byte belongs to the outline
      yield* this.#finish(text);
    }
    if (this.#earlier === null) return;
    this.#earlier.push(Buffer.from(chunk.subarray(from)));
    this.#earlierBytes += chunk.length - from;
    if (this.#earlierBytes > maxPartBytes) throw broken(this.#file, 'a part of it is too long');
  }

  end(): void {
    if (this.#place !== 'end') throw broken(this.#file, 'it ends too early');
  }

  /** Takes a byte of the outline; true = a key or a value begins with it. */
  #begin(byte: number): boolean {
    const isFirst = this.#isFirst;
    this.#isFirst = false;
    if (this.#place === 'start' && byte === 0x7b) {
      this.#place = 'key';
      this.#isFirst = true;
      return false;
    }
    if (this.#place === 'key' && byte === quote) return true;
    if (this.#place === 'colon' && byte === colon) {
      this.#place = 'value';
      return false;
    }
    if (this.#place === 'value' && !closers.has(byte) && byte !== comma && byte !== colon) {
      if (this.#isInSteps || this.#field !== 'steps' || byte !== openList) return true;
      this.#isInSteps = true;
      this.#isFirst = true;
      return false;
    }
    if (this.#place === 'behind' && byte === comma) {
      this.#place = this.#isInSteps ? 'value' : 'key';
      return false;
    }
    const mayClose = this.#place === 'behind' || (isFirst && this.#place !== 'start');
    if (mayClose && byte === (this.#isInSteps ? 0x5d : 0x7d)) {
      this.#place = this.#isInSteps ? 'behind' : 'end';
      this.#isInSteps = false;
      return false;
    }
    throw broken(this.#file, 'it is not one JSON object');
  }

  /** The last byte behind `index`, or `index` itself, up to which nothing can change. */
  #lastIdle(chunk: Buffer, index: number): number {
    if (this.#isEscaped || (!this.#isInString && this.#depth === 0)) return index;
    const telling = this.#isInString ? tellingInString : tellingInside;
    let next = index + 1;
    while (next < chunk.length && telling[chunk[next] ?? 0] === 0) next += 1;
    return next - 1;
  }

  /** Takes a byte of a key or value: whether that ends after it, ended before it, or goes on. */
  #advance(byte: number): 'no' | 'after' | 'before' {
    if (this.#isInString) {
      if (this.#isEscaped) this.#isEscaped = false;
      else if (byte === backslash) this.#isEscaped = true;
      else if (byte === quote) {
        this.#isInString = false;
        if (this.#depth === 0) return 'after';
      }
      return 'no';
    }
    if (byte === quote) this.#isInString = true;
    else if (openers.has(byte)) this.#depth += 1;
    else if (closers.has(byte)) {
      if (this.#depth === 0) return 'before';
      this.#depth -= 1;
      if (this.#depth === 0) return 'after';
    } else if (this.#depth === 0 && (byte === comma || blanks.has(byte))) return 'before';
    return 'no';
  }

  *#finish(text: string): Generator<DocumentPart> {
    if (this.#place === 'key') {
      this.#field = String(parsePart(this.#file, { field: 'a key', text }));
      this.#place = 'colon';
      return;
    }
    this.#place = 'behind';
    yield { field: this.#isInSteps ? null : this.#field, text };
  }
}

function bytesOf(list: readonly number[]): Uint8Array {
  const table = new Uint8Array(256);
  for (const byte of list) table[byte] = 1;
  return table;
}

function broken(file: string, what: string, cause?: unknown): RolloutError {
  return new RolloutError('TRAJECTORY_INVALID', `${file} cannot be read as a trajectory: ${what}`, {
    phase: 'collect',
    field: file,
    cause,
  });
}
