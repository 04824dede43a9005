/**
 * A JSON reader whose complaints are part of what a model reads, so they must not depend on the runtime: the wording and the places are those of
 * Python's decoder, which other runtimes of this agent use. Like it, this one takes `NaN` and `Infinity`, and the last of equal keys wins.
 * Objects are maps: no key of a reply can reach a prototype. Linear time.
 */
export type JsonValue =
  string | number | boolean | null | readonly JsonValue[] | ReadonlyMap<string, JsonValue>;

/** Deeper values are refused; a reply has three levels. */
export const maxJsonDepth = 500;

export const jsonComplaints = {
  value: 'Expecting value',
  propertyName: 'Expecting property name enclosed in double quotes',
  colon: "Expecting ':' delimiter",
  comma: "Expecting ',' delimiter",
  trailingCommaInObject: 'Illegal trailing comma before end of object',
  trailingCommaInArray: 'Illegal trailing comma before end of array',
  controlCharacter: 'Invalid control character at',
  escape: 'Invalid \\escape',
  unicodeEscape: 'Invalid \\uXXXX escape',
  unterminated: 'Unterminated string starting at',
  extraText: 'Extra data',
  depth: `Nested more than ${maxJsonDepth} levels deep`,
} as const;

export class JsonComplaint extends Error {
  override readonly name = 'JsonComplaint';
}

/** Throws JsonComplaint for anything that is not one JSON value. */
export function readJson(text: string): JsonValue {
  const reader = new JsonReader(text);
  return reader.readAll();
}

const escapes: Readonly<Record<string, string>> = {
  '"': '"',
  '\\': '\\',
  '/': '/',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
};
const numberPattern = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?/y;
const plainPattern = /[^"\\\u0000-\u001f]+/y;
const hexPattern = /[0-9a-fA-F]{4}/y;
const literals: readonly (readonly [string, JsonValue])[] = [
  ['true', true],
  ['false', false],
  ['null', null],
  ['NaN', NaN],
  ['Infinity', Infinity],
  ['-Infinity', -Infinity],
];

class JsonReader {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  readAll(): JsonValue {
    this.#skipBlanks();
    const value = this.#readValue();
    this.#skipBlanks();
    if (this.#at < this.#text.length) throw this.#complaint('extraText');
    return value;
  }

  #readValue(): JsonValue {
    const char = this.#text.charAt(this.#at);
    if (char === '"') return this.#readString();
    if (char === '{') return this.#nested(() => this.#readObject());
    if (char === '[') return this.#nested(() => this.#readArray());
    for (const [word, value] of literals)
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return value;
      }
    const digits = this.#take(numberPattern);
    if (digits === null) throw this.#complaint('value');
    return Number(digits);
  }

  #nested<T>(read: () => T): T {
    if (this.#depth === maxJsonDepth) throw this.#complaint('depth');
    this.#depth++;
    const value = read();
    this.#depth--;
    return value;
  }

  #readObject(): ReadonlyMap<string, JsonValue> {
    const members = new Map<string, JsonValue>();
    this.#at++;
    this.#skipBlanks();
    if (this.#takeChar('}')) return members;
    for (;;) {
      if (this.#text.charAt(this.#at) !== '"') throw this.#complaint('propertyName');
      const key = this.#readString();
      this.#skipBlanks();
      if (!this.#takeChar(':')) throw this.#complaint('colon');
      this.#skipBlanks();
      members.set(key, this.#readValue());
      if (this.#endsAfterItem('}', 'trailingCommaInObject')) return members;
    }
  }

  #readArray(): readonly JsonValue[] {
    const items: JsonValue[] = [];
    this.#at++;
    this.#skipBlanks();
    if (this.#takeChar(']')) return items;
    for (;;) {
      items.push(this.#readValue());
      if (this.#endsAfterItem(']', 'trailingCommaInArray')) return items;
    }
  }

  /** Reads the end, or the comma and what must not follow it. */
  #endsAfterItem(end: string, trailing: keyof typeof jsonComplaints): boolean {
    this.#skipBlanks();
    if (this.#takeChar(end)) return true;
    const comma = this.#at;
    if (!this.#takeChar(',')) throw this.#complaint('comma');
    this.#skipBlanks();
    if (this.#text.charAt(this.#at) === end) throw this.#complaint(trailing, comma);
    return false;
  }

  #readString(): string {
    const begin = this.#at++;
    let value = '';
    for (;;) {
      value += this.#take(plainPattern) ?? '';
      if (this.#takeChar('"')) return value;
      if (this.#at >= this.#text.length) throw this.#complaint('unterminated', begin);
      if (!this.#takeChar('\\')) throw this.#complaint('controlCharacter');
      value += this.#readEscape(begin);
    }
  }

  #readEscape(begin: number): string {
    const backslash = this.#at - 1;
    const char = this.#text.charAt(this.#at++);
    if (char === '') throw this.#complaint('unterminated', begin);
    if (char === 'u') {
      const hex = this.#take(hexPattern);
      if (hex === null) throw this.#complaint('unicodeEscape', backslash + 1);
      return String.fromCharCode(Number.parseInt(hex, 16));
    }
    const meant = escapes[char];
    if (meant === undefined) throw this.#complaint('escape', backslash);
    return meant;
  }

  #take(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text)?.[0] ?? null;
    if (found !== null) this.#at += found.length;
    return found;
  }

  #takeChar(char: string): boolean {
    if (this.#text.charAt(this.#at) !== char) return false;
    this.#at++;
    return true;
  }

  #skipBlanks(): void {
    while (' \t\n\r'.includes(this.#text.charAt(this.#at)) && this.#at < this.#text.length)
      this.#at++;
  }

  /** Places count characters, not UTF-16 units. */
  #complaint(kind: keyof typeof jsonComplaints, at: number = this.#at): JsonComplaint {
    const before = this.#text.slice(0, at);
    const line = before.split('\n').length;
    const column = characterCount(before.slice(before.lastIndexOf('\n') + 1)) + 1;
    const place = `line ${line} column ${column} (char ${characterCount(before)})`;
    return new JsonComplaint(`${jsonComplaints[kind]}: ${place}`);
  }
}

export function characterCount(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1) count++;
  return count;
}
