/**
 * Cuts the source of a template into tokens, with the white space rules that chat templates are written for: `trim_blocks` and `lstrip_blocks` are on, one
 * line end at the end of the source is dropped, and `-` or `+` beside a bracket overrules both.
 */
import { pythonSpaces, strip } from './python-text.ts';
import { TemplateError } from './python-values.ts';

export type TokenKind =
  | 'text'
  | 'output-start'
  | 'output-end'
  | 'block-start'
  | 'block-end'
  | 'name'
  | 'string'
  | 'integer'
  | 'float'
  | 'operator';

export interface Token {
  readonly kind: TokenKind;
  readonly text: string;
  readonly line: number;
}

const opening = /\{\{[-+]?|\{%[-+]?|\{#[-+]?/g;
const onlySpaces = new RegExp(`^[${pythonSpaces}]+$`, 'u');
const someSpaces = new RegExp(`[${pythonSpaces}]*`, 'uy');
const commentEnd = new RegExp(`[-+]?#\\}`, 'g');
const rawStart = new RegExp(`\\{%[-+]?[${pythonSpaces}]*raw[${pythonSpaces}]*(-?)%\\}`, 'uy');
const rawEnd = new RegExp(`\\{%([-+]?)[${pythonSpaces}]*endraw[${pythonSpaces}]*([-+]?)%\\}`, 'ug');
const inside =
  /(?<float>(?:\d+_)*\d+(?:\.(?:\d+_)*\d+(?:[eE][-+]?\d+)?|[eE][-+]?\d+))|(?<integer>0[bB][01_]+|0[oO][0-7_]+|0[xX][\da-fA-F_]+|\d[\d_]*)|(?<name>[\p{L}_][\p{L}\p{N}_]*)|(?<string>'(?:[^'\\]|\\[^])*'|"(?:[^"\\]|\\[^])*")|(?<operator>\/\/|\*\*|==|!=|>=|<=|[-+*/%~<>=.:|,;()[\]{}])/uy;

export function tokensOf(source: string): readonly Token[] {
  const normal = source.replace(/\r\n|\r/g, '\n').replace(/\n$/, '');
  return new Lexer(normal).tokens();
}

const tokenKinds = ['float', 'integer', 'name', 'string', 'operator'] as const;

class Lexer {
  readonly #source: string;
  readonly #tokens: Token[] = [];
  #at = 0;
  #line = 1;
  #countedTo = 0;
  /** Whether what was read last ended a line: then spaces in front of a block belong to the block. */
  #startsLine = true;

  constructor(source: string) {
    this.#source = source;
  }

  tokens(): readonly Token[] {
    for (;;) {
      opening.lastIndex = this.#at;
      const match = opening.exec(this.#source);
      if (match === null) break;
      this.#open(match);
    }
    this.#add('text', this.#source.slice(this.#at));
    return this.#tokens;
  }

  #open(match: RegExpExecArray): void {
    const [mark] = match;
    this.#add('text', this.#textBefore(match.index, mark));
    this.#at = match.index + mark.length;
    if (mark.startsWith('{#')) this.#skipComment();
    else if (mark.startsWith('{{')) this.#readInside('output', '}}');
    else if (!this.#readRaw(match.index)) this.#readInside('block', '%}');
  }

  #textBefore(end: number, mark: string): string {
    const text = this.#source.slice(this.#at, end);
    if (mark.endsWith('-')) return strip(text, null, 'right');
    if (mark.endsWith('+') || mark.startsWith('{{')) return text;
    const lineStart = text.lastIndexOf('\n') + 1;
    const isWholeLine = lineStart > 0 || this.#startsLine;
    return isWholeLine && onlySpaces.test(text.slice(lineStart)) ? text.slice(0, lineStart) : text;
  }

  #skipComment(): void {
    commentEnd.lastIndex = this.#at;
    const match = commentEnd.exec(this.#source);
    if (match === null) throw this.#wrong('a comment has no end');
    this.#at = match.index;
    this.#close(match[0], 'block');
  }

  /** `mark`: the closing bracket with its sign. */
  #close(mark: string, kind: 'output' | 'block'): void {
    this.#at += mark.length;
    const before = this.#at;
    if (mark.startsWith('-')) {
      someSpaces.lastIndex = this.#at;
      this.#at += someSpaces.exec(this.#source)?.[0].length ?? 0;
    } else if (kind === 'block' && !mark.startsWith('+') && this.#source[this.#at] === '\n')
      this.#at += 1;
    this.#startsLine = this.#at > before && this.#source[this.#at - 1] === '\n';
  }

  #readRaw(start: number): boolean {
    rawStart.lastIndex = start;
    const first = rawStart.exec(this.#source);
    if (first === null) return false;
    this.#at = start + first[0].length - 2 - (first[1] ?? '').length;
    this.#close(`${first[1] ?? ''}%}`, 'block');
    rawEnd.lastIndex = this.#at;
    const last = rawEnd.exec(this.#source);
    if (last === null) throw this.#wrong('raw has no endraw');
    this.#add('text', this.#textBefore(last.index, `{%${last[1] ?? ''}`));
    const mark = `${last[2] ?? ''}%}`;
    this.#at = last.index + last[0].length - mark.length;
    this.#close(mark, 'block');
    return true;
  }

  #readInside(kind: 'output' | 'block', end: string): void {
    this.#add(`${kind}-start`, '');
    const brackets: string[] = [];
    for (;;) {
      someSpaces.lastIndex = this.#at;
      this.#at += someSpaces.exec(this.#source)?.[0].length ?? 0;
      const mark = brackets.length > 0 ? null : this.#endMark(end);
      if (mark !== null) {
        this.#add(`${kind}-end`, '');
        this.#close(mark, kind);
        return;
      }
      this.#readToken(brackets);
    }
  }

  #endMark(end: string): string | null {
    for (const sign of ['', '-', '+']) {
      if (sign === '+' && end === '}}') continue;
      if (this.#source.startsWith(sign + end, this.#at)) return sign + end;
    }
    return null;
  }

  #readToken(brackets: string[]): void {
    inside.lastIndex = this.#at;
    const match = inside.exec(this.#source);
    if (match === null) throw this.#wrong(`unexpected '${this.#source.charAt(this.#at)}'`);
    const [text] = match;
    const groups: Readonly<Record<string, string | undefined>> = match.groups ?? {};
    const kind = tokenKinds.find((one) => groups[one] !== undefined) ?? 'operator';
    if (kind === 'operator') {
      if ('([{'.includes(text)) brackets.push(text);
      else if (')]}'.includes(text)) brackets.pop();
    }
    this.#add(kind, kind === 'string' ? unescaped(text.slice(1, -1)) : text);
    this.#at += text.length;
  }

  #add(kind: TokenKind, text: string): void {
    while (this.#countedTo < this.#at) {
      if (this.#source[this.#countedTo] === '\n') this.#line += 1;
      this.#countedTo += 1;
    }
    if (kind !== 'text' || text !== '') this.#tokens.push({ kind, text, line: this.#line });
  }

  #wrong(problem: string): TemplateError {
    return new TemplateError(`line ${this.#line} of the template: ${problem}`);
  }
}

const simpleEscapes = new Map(
  Object.entries({
    ...{ n: '\n', t: '\t', r: '\r', a: '\x07', b: '\b', f: '\f', v: '\v' },
    ...{ '\\': '\\', "'": "'", '"': '"', '\n': '' },
  }),
);
const escape = /\\(?:([0-7]{1,3})|x([\da-fA-F]{2})|u([\da-fA-F]{4})|U([\da-fA-F]{8})|([^]))/g;

/** As literals of Python: what is no escape stays with its backslash. */
export function unescaped(text: string): string {
  if (!text.includes('\\')) return text;
  return text.replace(
    escape,
    (whole: string, octal?: string, x?: string, u?: string, long?: string, char?: string) => {
      if (octal !== undefined) return String.fromCodePoint(Number.parseInt(octal, 8));
      const hex = x ?? u ?? long;
      if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16));
      if (char === 'N') throw new TemplateError(`the escape ${whole} in a template is not known`);
      return simpleEscapes.get(char ?? '') ?? whole;
    },
  );
}
