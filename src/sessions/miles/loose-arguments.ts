/**
 * Arguments of tool calls by what they say. Null, "", {} and "{}" all say nothing. A text counts as the object that it spells, with numbers as exact decimals
 * (`1` is `1.0`, and what no double holds is compared all the same); what is no such object is equal only to itself.
 */
import { equal, isObject } from './message-matcher.ts';

export function looselyEqualArguments(stored: unknown, given: unknown): boolean {
  const [own, other] = [readArguments(stored), readArguments(given)];
  if (own === null || other === null) return typeof stored === typeof given && equal(stored, given);
  return equal(own, other);
}

/** null = no object. Numbers become texts of their own kind, so that they are compared as they are written. */
function readArguments(value: unknown): unknown {
  if (value === null || value === '') return {};
  if (isObject(value)) return readObject(JSON.stringify(value));
  return typeof value === 'string' ? readObject(value) : null;
}

function readObject(text: string): unknown {
  try {
    const value = new ArgumentReader(text).read();
    return isObject(value) ? value : null;
  } catch (error) {
    if (error instanceof NotArguments) return null;
    throw error;
  }
}

class NotArguments extends Error {}

const maxDepth = 200;

/** JSON, without what makes it ambiguous: a key that stands twice is refused. */
class ArgumentReader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): unknown {
    const value = this.#value(0);
    this.#skip();
    if (this.#at !== this.#text.length) throw new NotArguments();
    return value;
  }

  #value(depth: number): unknown {
    if (depth > maxDepth) throw new NotArguments();
    this.#skip();
    const next = this.#text[this.#at];
    if (next === '{') return this.#object(depth);
    if (next === '[') return this.#list(depth);
    return next === '"' ? this.#string() : this.#scalar();
  }

  #object(depth: number): unknown {
    const fields = new Map<string, unknown>();
    this.#take('{');
    if (this.#takes('}')) return {};
    do {
      this.#skip();
      const key = this.#string();
      if (fields.has(key)) throw new NotArguments();
      this.#take(':');
      fields.set(key, this.#value(depth + 1));
    } while (this.#takes(','));
    this.#take('}');
    return Object.fromEntries(fields);
  }

  #list(depth: number): unknown {
    const values: unknown[] = [];
    this.#take('[');
    if (this.#takes(']')) return values;
    do values.push(this.#value(depth + 1));
    while (this.#takes(','));
    this.#take(']');
    return values;
  }

  #string(): string {
    const [found] = this.#match(/"[^"\\\u0000-\u001f]*(?:\\.[^"\\\u0000-\u001f]*)*"/y);
    try {
      return JSON.parse(found) as string;
    } catch {
      throw new NotArguments();
    }
  }

  #scalar(): unknown {
    const [found, number] = this.#match(
      /true|false|null|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)/y,
    );
    return number === undefined ? (JSON.parse(found) as unknown) : [numberMark, decimalOf(number)];
  }

  #match(pattern: RegExp): readonly [string, string | undefined] {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found === null) throw new NotArguments();
    this.#at = pattern.lastIndex;
    return [found[0], found[1]];
  }

  #skip(): void {
    while (' \t\n\r'.includes(this.#text[this.#at] ?? 'x')) this.#at += 1;
  }

  #takes(character: string): boolean {
    this.#skip();
    if (this.#text[this.#at] !== character) return false;
    this.#at += 1;
    return true;
  }

  #take(character: string): void {
    if (!this.#takes(character)) throw new NotArguments();
  }
}

/** No list of the arguments holds it. */
const numberMark = Symbol('number');

/** Digits without zeros at either end, and the power of ten behind them: equal numbers have equal texts. */
function decimalOf(number: string): string {
  const [, sign = '', whole = '', fraction = '', power = '0'] =
    /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(number) ?? [];
  const digits = (whole + fraction).replace(/^0+/, '');
  const significant = digits.replace(/0+$/, '');
  if (significant === '') return '0';
  const exponent =
    BigInt(power) - BigInt(fraction.length) + BigInt(digits.length - significant.length);
  return `${sign}${significant}e${String(exponent)}`;
}
