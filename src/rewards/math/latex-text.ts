/**
 * LaTeX as the plain text that people would type for it: `\frac{a}{b}` is `a/b`, `\sqrt{x}` is `sqrt(x)`. For answers, which are short: commands
 * that mean nothing in a formula are dropped with their backslash, an unknown one altogether.
 */

const words: Readonly<Record<string, string>> = {
  pi: 'pi',
  infty: 'inf',
  cup: 'U',
  cdot: '*',
  times: '*',
  div: '÷',
  pm: '±',
  mp: '∓',
  le: '≤',
  leq: '≤',
  ge: '≥',
  geq: '≥',
  ne: '≠',
  neq: '≠',
  in: '∈',
  cap: '∩',
  emptyset: '∅',
  to: '→',
  ln: 'ln',
  log: 'log',
  exp: 'exp',
  sin: 'sin',
  cos: 'cos',
  tan: 'tan',
  alpha: 'α',
  beta: 'β',
  gamma: 'γ',
  delta: 'δ',
  epsilon: 'ϵ',
  theta: 'θ',
  lambda: 'λ',
  mu: 'μ',
  phi: 'ϕ',
  omega: 'ω',
  circ: '∘',
  degree: '°',
  angle: '∠',
  ldots: '…',
  dots: '…',
  quad: '  ',
  qquad: '    ',
};

/** Commands whose argument is the text that they stand for. */
const wrappers = new Set([
  ...['text', 'textbf', 'textit', 'textrm', 'mathrm', 'mathbf', 'mathit', 'mathsf', 'mbox'],
  ...['operatorname', 'boxed', 'emph', 'displaystyle', 'left', 'right', 'big', 'Big', 'bigg'],
]);

export function latexText(latex: string): string {
  return new LatexReader(latex.replaceAll('\\frac', ' \\frac')).whole().trim();
}

class LatexReader {
  readonly #latex: string;
  #at = 0;
  /** Environments around the current place. */
  #depth = 0;

  constructor(latex: string) {
    this.#latex = latex;
  }

  whole(): string {
    let text = this.#text();
    while (this.#at < this.#latex.length) {
      // A brace that closes nothing.
      this.#at++;
      text += this.#text();
    }
    return text;
  }

  /** To the end, or to the brace that closes a group. */
  #text(): string {
    let text = '';
    for (;;) {
      const char = this.#latex[this.#at];
      if (char === undefined || char === '}') return text;
      text += this.#piece();
    }
  }

  #piece(): string {
    const char = this.#latex[this.#at] ?? '';
    if (char === '{') return this.#group();
    this.#at++;
    if (char === '\\') return this.#command();
    return char === '~' ? ' ' : char;
  }

  #group(): string {
    this.#at++;
    const text = this.#text();
    this.#at++;
    return text;
  }

  #command(): string {
    const name = /^(?:[A-Za-z]+|.|$)/s.exec(this.#latex.slice(this.#at))?.[0] ?? '';
    this.#at += name.length;
    if (/^[A-Za-z]/.test(name)) this.#skipSpaces();
    if (/^[tdc]?frac$/.test(name))
      return `${numerator(this.#argument())}/${operand(this.#argument())}`;
    if (name === 'sqrt') return this.#root();
    if (name === 'begin' || name === 'end') {
      this.#argument();
      this.#depth += name === 'begin' ? 1 : -1;
      return name === 'begin' ? '[' : ']';
    }
    if (wrappers.has(name)) return '';
    if (/^[,;:!]$/.test(name)) return name === '!' ? '' : ' ';
    if (/^[A-Za-z]/.test(name)) return words[name] ?? '';
    if (name !== '\\') return name;
    return this.#depth > 0 ? ';' : '';
  }

  #root(): string {
    if (this.#latex[this.#at] !== '[') return `sqrt(${this.#argument()})`;
    const end = this.#latex.indexOf(']', this.#at);
    const degree = end < 0 ? '' : this.#latex.slice(this.#at + 1, end);
    this.#at = end < 0 ? this.#latex.length : end + 1;
    return degree === '2' ? `sqrt(${this.#argument()})` : `(${this.#argument()})**(1/${degree})`;
  }

  #argument(): string {
    this.#skipSpaces();
    return this.#at < this.#latex.length ? this.#piece() : '';
  }

  #skipSpaces(): void {
    while (this.#latex[this.#at] === ' ') this.#at++;
  }
}

/** A sign may stand before all of it. */
function numerator(text: string): string {
  return text.startsWith('-') ? `-${operand(text.slice(1))}` : operand(text);
}

/** In brackets where a slash beside it would take only a part of it. */
function operand(text: string): string {
  return /^[\w.]*$|^\w*\([^()]*\)$/.test(text) ? text : `(${text})`;
}
