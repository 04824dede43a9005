import type { Token, TokenKind } from './jinja-lexer.ts';
import { TemplateError } from './python-values.ts';

/** Goes over the tokens of a template. */
export class TokenReader {
  readonly #tokens: readonly Token[];
  #at = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  peek(ahead = 0): Token | null {
    return this.#tokens[this.#at + ahead] ?? null;
  }

  take(): Token {
    const token = this.peek();
    if (token === null) throw this.wrong('the template ends too early');
    this.#at += 1;
    return token;
  }

  /** Of the brackets that an expression stands in. */
  get isEnd(): boolean {
    const kind = this.peek()?.kind;
    if (kind === undefined || kind === 'output-end' || kind === 'block-end') return true;
    return kind === 'operator' && ')]}'.includes(this.peek()?.text ?? '');
  }

  isName(name: string): boolean {
    const token = this.peek();
    return token?.kind === 'name' && token.text === name;
  }

  isOperator(operator: string): boolean {
    const token = this.peek();
    return token?.kind === 'operator' && token.text === operator;
  }

  takesName(name: string): boolean {
    if (!this.isName(name)) return false;
    this.#at += 1;
    return true;
  }

  takesOperator(operator: string): boolean {
    if (!this.isOperator(operator)) return false;
    this.#at += 1;
    return true;
  }

  expectOperator(operator: string): void {
    if (!this.takesOperator(operator)) throw this.wrong(`'${operator}' is missing`);
  }

  expectKind(kind: TokenKind): string {
    const token = this.take();
    if (token.kind !== kind) throw this.wrong(`a ${kind} is missing`, token);
    return token.text;
  }

  wrong(problem: string, token: Token | null = this.peek()): TemplateError {
    const line = token?.line ?? this.#tokens.at(-1)?.line ?? 1;
    return new TemplateError(`line ${line} of the template: ${problem}`);
  }
}
