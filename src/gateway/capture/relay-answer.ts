/**
 * The answer of a relayed call while its bytes pass: what the engine says is read for the capture, and what the client did not ask for is taken out. Where
 * nothing is to be taken out the bytes go on as they are, each piece at once.
 */
import { messageOf } from '../../core/errors.ts';
import { exactJson } from '../../core/exact-json.ts';
import type { ModelPart } from '../../engines/model-call.ts';
import { recordOf, textOf, type JsonRecord } from '../../engines/shared/json.ts';
import type { AnswerReader } from '../../engines/shared/running-call.ts';
import type { HiddenFields } from './asked-fields.ts';
import { EventSplitter, eventWithData, type RawEvent } from './event-splitter.ts';
import { withoutHidden } from './hide-fields.ts';

/** More than any answer, or any event of one, can have to say. */
const mostHeld = 128 * 1024 * 1024;

const nothing = Buffer.alloc(0);

export interface RelayAnswerParts {
  readonly isStream: boolean;
  readonly reader: AnswerReader;
  readonly hidden: HiddenFields | null;
  readonly onPart: (part: ModelPart) => void;
}

export class RelayAnswer {
  readonly #parts: RelayAnswerParts;
  readonly #splitter = new EventSplitter();
  readonly #whole: Buffer[] = [];
  #wholeBytes = 0;
  #problem: string | null = null;
  #id: string | null = null;

  constructor(parts: RelayAnswerParts) {
    this.#parts = parts;
  }

  /** As the upstream calls it; null = it did not say. */
  get id(): string | null {
    return this.#id;
  }

  /** Why it is not read any further; null = it is. */
  get problem(): string | null {
    return this.#problem;
  }

  /** What of it goes to the client. Throws where what must not be seen could not be taken out. */
  push(chunk: Buffer): Buffer {
    const { isStream, hidden } = this.#parts;
    if (this.#problem !== null && hidden === null) return chunk;
    if (!isStream) return this.#hold(chunk);
    const events = this.#splitter.push(chunk);
    if (this.#splitter.heldBytes > mostHeld) this.#tooLong();
    const shown = events.map((event) => this.#event(event));
    return hidden === null ? chunk : Buffer.concat(shown);
  }

  /** What is left, once all has come. */
  end(): Buffer {
    const { isStream, hidden, reader } = this.#parts;
    if (!isStream) return this.#wholeEnd();
    const rest = this.#splitter.rest();
    const shown = rest === null ? nothing : this.#event(rest);
    this.#read(() => reader.end() ?? []);
    return hidden === null ? nothing : shown;
  }

  #hold(chunk: Buffer): Buffer {
    this.#wholeBytes += chunk.length;
    if (this.#wholeBytes > mostHeld) this.#tooLong();
    else this.#whole.push(chunk);
    return this.#parts.hidden === null ? chunk : nothing;
  }

  #tooLong(): void {
    const problem = 'the answer does not end';
    if (this.#parts.hidden !== null) throw new Error(problem);
    this.#problem = problem;
    this.#whole.length = 0;
  }

  #wholeEnd(): Buffer {
    const { hidden, reader } = this.#parts;
    if (this.#problem !== null) return nothing;
    const bytes = Buffer.concat(this.#whole);
    const text = bytes.toString('utf8');
    const document = objectIn(text);
    this.#id = textOf(document?.['id']);
    this.#read(() => reader.whole(document));
    if (hidden === null) return nothing;
    if (document === null) return bytes;
    const shown = withoutHidden(document, hidden, { isStream: false });
    return shown === document ? bytes : Buffer.from(spelled(shown ?? {}, text));
  }

  /** What of it goes to the client. */
  #event(event: RawEvent): Buffer {
    const { hidden, reader } = this.#parts;
    const { bytes, data } = event;
    if (data === null || data.trim() === '[DONE]') return bytes;
    const document = objectIn(data);
    this.#id ??= textOf(document?.['id']);
    this.#read(() => {
      if (document === null) throw new Error('an event is not JSON');
      return reader.event(document);
    });
    if (hidden === null) return bytes;
    // What cannot be read cannot be cleaned either: a piece of an event may hold what was not asked for.
    if (document === null) return nothing;
    const shown = withoutHidden(document, hidden, { isStream: true });
    if (shown === document) return bytes;
    return shown === null ? nothing : eventWithData(event, spelled(shown, data));
  }

  /** After the first problem nothing more is read: what follows would be put in a wrong place. */
  #read(parts: () => readonly ModelPart[]): void {
    if (this.#problem !== null) return;
    try {
      for (const part of parts()) this.#parts.onPart(part);
    } catch (error) {
      this.#problem = messageOf(error);
    }
  }
}

/** `text`: what it was read from. Only where a negative zero stands in it is its sign worth a look at every value. */
function spelled(shown: JsonRecord, text: string): string {
  return /-0(?:\.0*)?(?![\d.])/.test(text) ? exactJson(shown) : JSON.stringify(shown);
}

function objectIn(text: string): JsonRecord | null {
  try {
    return recordOf(JSON.parse(text));
  } catch {
    return null;
  }
}
