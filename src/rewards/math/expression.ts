/**
 * Formulas as people type them: `2x(x+1)/sqrt(3)`, `5!`, `3**2`. Letters are variables, each for itself; `pi` is the number. A product needs no sign.
 */

export type Expression =
  | { readonly kind: 'number'; readonly text: string }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'sum' | 'product' | 'quotient' | 'power'; readonly of: readonly Expression[] }
  | {
      readonly kind: 'negative' | 'factorial' | 'sqrt' | 'ln';
      readonly of: readonly [Expression];
    };

type Token = { readonly kind: 'number' | 'name' | 'sign'; readonly text: string };

const tokenPattern =
  /\s*(?:(\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?)|(sqrt|ln|pi|\p{L})|(\*\*|[-+*/^()!]))/uy;

/** Deeper than any answer; a hostile one must not overflow the stack. */
const maxDepth = 200;

/** null = it is no formula. */
export function parseExpression(text: string): Expression | null {
  const tokens = readTokens(text);
  if (tokens === null) return null;
  try {
    return new ExpressionReader(tokens).whole();
  } catch (error) {
    if (error instanceof NoFormula) return null;
    throw error;
  }
}

class NoFormula extends Error {}

function readTokens(text: string): readonly Token[] | null {
  const tokens: Token[] = [];
  tokenPattern.lastIndex = 0;
  while (tokenPattern.lastIndex < text.length) {
    const [, number, name, sign] = tokenPattern.exec(text) ?? [];
    if (number !== undefined) tokens.push({ kind: 'number', text: number });
    else if (name !== undefined) tokens.push({ kind: 'name', text: name });
    else if (sign !== undefined) tokens.push({ kind: 'sign', text: sign === '**' ? '^' : sign });
    else return null;
  }
  return tokens;
}

class ExpressionReader {
  readonly #tokens: readonly Token[];
  #at = 0;
  #depth = 0;

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens;
  }

  whole(): Expression {
    const expression = this.#sum();
    if (this.#at < this.#tokens.length) throw new NoFormula();
    return expression;
  }

  #takes(...signs: readonly string[]): string | null {
    const token = this.#tokens[this.#at];
    if (token?.kind !== 'sign' || !signs.includes(token.text)) return null;
    this.#at++;
    return token.text;
  }

  #sum(): Expression {
    if (++this.#depth > maxDepth) throw new NoFormula();
    const terms = [this.#product()];
    for (let sign = this.#takes('+', '-'); sign !== null; sign = this.#takes('+', '-')) {
      const term = this.#product();
      terms.push(sign === '+' ? term : { kind: 'negative', of: [term] });
    }
    this.#depth--;
    return terms.length === 1 && terms[0] !== undefined ? terms[0] : { kind: 'sum', of: terms };
  }

  #product(): Expression {
    let product = this.#signed();
    for (;;) {
      const sign = this.#takes('*', '/');
      if (sign === null && !this.#opensFactor()) return product;
      const factor = sign === null ? this.#power() : this.#signed();
      product = { kind: sign === '/' ? 'quotient' : 'product', of: [product, factor] };
    }
  }

  /** Whether what follows is a factor without a sign. */
  #opensFactor(): boolean {
    const token = this.#tokens[this.#at];
    return token !== undefined && (token.kind !== 'sign' || token.text === '(');
  }

  #signed(): Expression {
    if (++this.#depth > maxDepth) throw new NoFormula();
    const sign = this.#takes('+', '-');
    const expression: Expression =
      sign === null
        ? this.#power()
        : sign === '-'
          ? { kind: 'negative', of: [this.#signed()] }
          : this.#signed();
    this.#depth--;
    return expression;
  }

  #power(): Expression {
    let base = this.#atom();
    while (this.#takes('!') !== null) base = { kind: 'factorial', of: [base] };
    return this.#takes('^') === null ? base : { kind: 'power', of: [base, this.#signed()] };
  }

  #atom(): Expression {
    const token = this.#tokens[this.#at++];
    if (token === undefined) throw new NoFormula();
    if (token.kind === 'number') return { kind: 'number', text: token.text };
    if (token.kind === 'name') return this.#named(token.text);
    if (token.text !== '(') throw new NoFormula();
    return this.#bracketed();
  }

  #named(name: string): Expression {
    const isCalled = this.#takes('(') !== null;
    if (name === 'sqrt' || name === 'ln') {
      if (!isCalled) throw new NoFormula();
      return { kind: name, of: [this.#bracketed()] };
    }
    // `f(x)` may be a function, and nobody says which.
    if (isCalled) throw new NoFormula();
    return { kind: 'name', name };
  }

  /** What follows an opening bracket, with the closing one. */
  #bracketed(): Expression {
    const expression = this.#sum();
    if (this.#takes(')') === null) throw new NoFormula();
    return expression;
  }
}
