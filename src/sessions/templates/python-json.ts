/** Python's `json.loads` and `json.dumps` on values of templates. */
import { compareText, floatText } from './python-text.ts';
import {
  type Dict,
  isList,
  PyFloat,
  TemplateError,
  typeName,
  Undefined,
  type Value,
} from './python-values.ts';

/** What a template may ask of `tojson`. */
export interface JsonStyle {
  readonly ensureAscii: boolean;
  readonly sortKeys: boolean;
  /** null = on one line. */
  readonly indent: string | null;
  readonly itemSeparator: string;
  readonly keySeparator: string;
}

export const plainJson: JsonStyle = {
  ensureAscii: false,
  sortKeys: false,
  indent: null,
  itemSeparator: ', ',
  keySeparator: ': ',
};

export function dumpJson(value: Value, style: JsonStyle = plainJson): string {
  return dump(value, style, '\n');
}

function dump(value: Value, style: JsonStyle, lineStart: string): string {
  if (value === null) return 'null';
  if (typeof value === 'boolean') return value ? 'true' : 'false';
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'string') return dumpText(value, style);
  if (value instanceof PyFloat) return dumpFloat(value.value);
  if (isList(value)) {
    const inner = (next: string): string[] => value.map((item) => dump(item, style, next));
    return wrapped('[]', inner, { style, lineStart });
  }
  if (value instanceof Map) {
    const entries = [...value];
    if (style.sortKeys) entries.sort(([a], [b]) => compareText(a, b));
    const inner = (next: string): string[] =>
      entries.map(
        ([key, item]) => `${dumpText(key, style)}${style.keySeparator}${dump(item, style, next)}`,
      );
    return wrapped('{}', inner, { style, lineStart });
  }
  const kind = value instanceof Undefined ? 'Undefined' : typeName(value);
  throw new TemplateError(`Object of type ${kind} is not JSON serializable`);
}

function wrapped(
  brackets: '[]' | '{}',
  inner: (lineStart: string) => readonly string[],
  { style, lineStart }: { readonly style: JsonStyle; readonly lineStart: string },
): string {
  const next = style.indent === null ? '' : lineStart + style.indent;
  const parts = inner(next);
  if (parts.length === 0) return brackets;
  const last = style.indent === null ? '' : lineStart;
  return `${brackets[0] ?? ''}${next}${parts.join(style.itemSeparator + next)}${last}${brackets[1] ?? ''}`;
}

function dumpText(text: string, style: JsonStyle): string {
  const json = JSON.stringify(text);
  if (!style.ensureAscii) return json;
  return json.replace(
    /[\x7f-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function dumpFloat(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (!Number.isFinite(value)) return value > 0 ? 'Infinity' : '-Infinity';
  return floatText(value);
}

/** Throws a SyntaxError for what Python would not read; reads what only Python does: NaN and the infinities. */
export function parseJson(text: string): Value {
  const reader = new JsonReader(text);
  return reader.document();
}

const space = /[ \t\n\r]*/y;
const number = /(-?(?:0|[1-9]\d*))(\.\d+)?([eE][-+]?\d+)?/y;
const string = /"(?:[^"\\\u0000-\u001f]|\\.)*"/y;
const words = new Map<string, Value>([
  ['null', null],
  ['true', true],
  ['false', false],
  ['NaN', new PyFloat(Number.NaN)],
  ['Infinity', new PyFloat(Number.POSITIVE_INFINITY)],
  ['-Infinity', new PyFloat(Number.NEGATIVE_INFINITY)],
]);
/** Python stops near here too: its parser recurses. */
const deepest = 900;

class JsonReader {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  document(): Value {
    const value = this.#value();
    this.#skipSpace();
    if (this.#at < this.#text.length) throw this.#wrong();
    return value;
  }

  #value(): Value {
    this.#skipSpace();
    const char = this.#text.charAt(this.#at);
    if (char === '"') return this.#string();
    if (char === '{') return this.#nested(() => this.#object());
    if (char === '[') return this.#nested(() => this.#list());
    for (const [word, value] of words)
      if (this.#text.startsWith(word, this.#at)) {
        this.#at += word.length;
        return value;
      }
    const match = this.#match(number);
    const [, whole = '', fraction, exponent] = match;
    return fraction === undefined && exponent === undefined
      ? BigInt(whole)
      : new PyFloat(Number(match[0]));
  }

  #nested(read: () => Value): Value {
    this.#depth += 1;
    if (this.#depth > deepest) throw this.#wrong();
    this.#at += 1;
    const value = read();
    this.#depth -= 1;
    return value;
  }

  #object(): Dict {
    const fields: Dict = new Map();
    if (this.#takes('}')) return fields;
    do {
      this.#skipSpace();
      const key = this.#string();
      this.#expect(':');
      fields.set(key, this.#value());
    } while (this.#takes(','));
    this.#expect('}');
    return fields;
  }

  #list(): readonly Value[] {
    const items: Value[] = [];
    if (this.#takes(']')) return items;
    do items.push(this.#value());
    while (this.#takes(','));
    this.#expect(']');
    return items;
  }

  #string(): string {
    return JSON.parse(this.#match(string)[0]) as string;
  }

  #takes(char: string): boolean {
    this.#skipSpace();
    if (this.#text.charAt(this.#at) !== char) return false;
    this.#at += 1;
    return true;
  }

  #expect(char: string): void {
    if (!this.#takes(char)) throw this.#wrong();
  }

  #skipSpace(): void {
    this.#match(space);
  }

  #match(pattern: RegExp): RegExpExecArray {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match === null) throw this.#wrong();
    this.#at += match[0].length;
    return match;
  }

  #wrong(): SyntaxError {
    return new SyntaxError(`no JSON at character ${this.#at}`);
  }
}
