/**
 * The input of a custom tool. The upstream knows such a tool as a function with one string, so that it samples `{"input": "…"}`; the client wants the raw
 * string, as it grows. Once the string has begun, what is decoded goes out and cannot be taken back; until then everything is held, and what does not begin
 * like this is the input itself, as sampled. Nothing of a string is lost: a raw line break, an escape that JSON does not know or a cut one stay as they are.
 */

/** What the upstream's arguments of a custom tool look like. */
export function customArguments(input: string): string {
  return JSON.stringify({ input });
}

const notAnObject = 'its arguments are not {"input": …}, taken as sampled';
const begin = /^\s*\{\s*"input"\s*:\s*"/;
const simpleEscapes: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};

/** `after`: behind the string's closing quote. */
type Stage = 'before' | 'string' | 'after' | 'raw';

export class CustomInput {
  #stage: Stage = 'before';
  /** Sampled, and not decoded yet. */
  #held = '';
  #rest = '';
  #note: string | null = null;

  /** What the client should know about how the input came about; null = nothing. Known after `finish`. */
  get note(): string | null {
    return this.#note;
  }

  /** Sampled text in, the input's next piece out. */
  push(sampled: string): string {
    switch (this.#stage) {
      case 'before':
        this.#held += sampled;
        return this.#begin();
      case 'string':
        this.#held += sampled;
        return this.#decode();
      case 'after':
        this.#rest += sampled;
        return '';
      case 'raw':
        return sampled;
    }
  }

  /** Nothing more is sampled: the last piece. */
  finish(): string {
    switch (this.#stage) {
      case 'before':
        if (this.#held !== '') this.#note = notAnObject;
        return this.#takeHeld();
      case 'string':
        this.#note = 'its input is cut off';
        return this.#takeHeld();
      case 'after':
        if (this.#rest.trim() !== '}')
          this.#note = 'its arguments hold more than the input, which is left out';
        return '';
      case 'raw':
        return '';
    }
  }

  #begin(): string {
    const match = begin.exec(this.#held);
    if (match !== null) {
      this.#held = this.#held.slice(match[0].length);
      this.#stage = 'string';
      return this.#decode();
    }
    if (mayBegin(this.#held)) return '';
    this.#stage = 'raw';
    this.#note = notAnObject;
    return this.#takeHeld();
  }

  #decode(): string {
    const text = this.#held;
    let decoded = '';
    let at = 0;
    while (at < text.length) {
      const next = nextMark(text, at);
      decoded += text.slice(at, next);
      at = next;
      if (text[at] === '"') {
        this.#stage = 'after';
        this.#rest = text.slice(at + 1);
        at = text.length;
      } else if (at < text.length) {
        const escape = readEscape(text, at);
        if (escape === null) break;
        decoded += escape.text;
        at = escape.end;
      }
    }
    this.#held = text.slice(at);
    return decoded;
  }

  #takeHeld(): string {
    const held = this.#held;
    this.#held = '';
    return held;
  }
}

/** Whether more text could make it the beginning of the object. */
function mayBegin(text: string): boolean {
  return /^\s*(?:\{\s*(?:"(?:i(?:n(?:p(?:u(?:t(?:"\s*(?::\s*)?)?)?)?)?)?)?)?)?$/.test(text);
}

/** Where the next quote or backslash stands, or the end. */
function nextMark(text: string, from: number): number {
  for (let at = from; at < text.length; at++) if (text[at] === '"' || text[at] === '\\') return at;
  return text.length;
}

/** null = it is not all there yet. */
function readEscape(
  text: string,
  at: number,
): { readonly text: string; readonly end: number } | null {
  const letter = text[at + 1];
  if (letter === undefined) return null;
  if (letter !== 'u') {
    const simple = simpleEscapes[letter];
    return { text: simple ?? text.slice(at, at + 2), end: at + 2 };
  }
  const digits = /^[0-9a-fA-F]{0,4}/.exec(text.slice(at + 2, at + 6))?.[0] ?? '';
  const end = at + 2 + digits.length;
  if (digits.length === 4) return { text: String.fromCharCode(Number.parseInt(digits, 16)), end };
  return end === text.length ? null : { text: text.slice(at, end), end };
}
