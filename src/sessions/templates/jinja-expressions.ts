/** Parses expressions, in Jinja's order of precedence. */
import type { CompareOperator, Expression, GivenArguments, Target } from './jinja-nodes.ts';
import { TokenReader } from './token-reader.ts';
import { PyFloat, type Value } from './python-values.ts';

const constants = new Map<string, Value>([
  ...(['true', 'True'] as const).map((name) => [name, true] as const),
  ...(['false', 'False'] as const).map((name) => [name, false] as const),
  ...(['none', 'None'] as const).map((name) => [name, null] as const),
]);
const reserved = new Set(['and', 'or', 'not', 'if', 'else', 'elif', 'is', 'in', 'recursive']);
const compareOperators = new Set(['==', '!=', '<', '<=', '>', '>=']);

export class ExpressionParser extends TokenReader {
  /** With several values apart by commas: a tuple. */
  tupleOrExpression(): Expression {
    const first = this.expression();
    if (!this.isOperator(',')) return first;
    const items = [first];
    while (this.takesOperator(',')) {
      if (this.isEnd || this.isOperator('=') || this.isName('in')) break;
      items.push(this.expression());
    }
    return { kind: 'tuple', items };
  }

  expression(): Expression {
    let value = this.#or();
    while (this.takesName('if')) {
      const condition = this.#or();
      const otherwise = this.takesName('else') ? this.expression() : null;
      value = { kind: 'choice', condition, then: value, otherwise };
    }
    return value;
  }

  /** For the items of a loop, where `if` begins the loop's own condition. */
  loopItems(): Expression {
    const first = this.#or();
    if (!this.isOperator(',')) return first;
    const items = [first];
    while (this.takesOperator(',')) items.push(this.#or());
    return { kind: 'tuple', items };
  }

  target(): Target {
    const targets = [this.#oneTarget()];
    let isSeveral = false;
    while (this.takesOperator(',')) {
      isSeveral = true;
      if (this.isOperator('=') || this.isName('in')) break;
      targets.push(this.#oneTarget());
    }
    const [only] = targets;
    return isSeveral || only === undefined ? { kind: 'several', targets } : only;
  }

  #oneTarget(): Target {
    if (this.takesOperator('(')) {
      const target = this.target();
      this.expectOperator(')');
      return target.kind === 'several' ? target : { kind: 'several', targets: [target] };
    }
    const name = this.expectKind('name');
    if (!this.takesOperator('.')) return { kind: 'name', name };
    return { kind: 'field', namespace: name, name: this.expectKind('name') };
  }

  #or(): Expression {
    let left = this.#and();
    while (this.takesName('or'))
      left = { kind: 'binary', operator: 'or', left, right: this.#and() };
    return left;
  }

  #and(): Expression {
    let left = this.#not();
    while (this.takesName('and'))
      left = { kind: 'binary', operator: 'and', left, right: this.#not() };
    return left;
  }

  #not(): Expression {
    return this.takesName('not')
      ? { kind: 'unary', operator: 'not', operand: this.#not() }
      : this.#compare();
  }

  #compare(): Expression {
    const first = this.#sum();
    const rest: (readonly [CompareOperator, Expression])[] = [];
    for (let operator = this.#compareOperator(); operator !== null;) {
      rest.push([operator, this.#sum()]);
      operator = this.#compareOperator();
    }
    return rest.length === 0 ? first : { kind: 'compare', first, rest };
  }

  #compareOperator(): CompareOperator | null {
    const token = this.peek();
    if (token?.kind === 'operator' && compareOperators.has(token.text)) {
      this.take();
      return token.text as CompareOperator;
    }
    if (this.takesName('in')) return 'in';
    const next = this.peek(1);
    if (this.isName('not') && next?.kind === 'name' && next.text === 'in') {
      this.take();
      this.take();
      return 'not in';
    }
    return null;
  }

  #sum(): Expression {
    let left = this.#concatenation();
    for (;;) {
      const operator = this.takesOperator('+') ? '+' : this.takesOperator('-') ? '-' : null;
      if (operator === null) return left;
      left = { kind: 'binary', operator, left, right: this.#concatenation() };
    }
  }

  #concatenation(): Expression {
    let left = this.#product();
    while (this.takesOperator('~'))
      left = { kind: 'binary', operator: '~', left, right: this.#product() };
    return left;
  }

  #product(): Expression {
    let left = this.#power();
    for (;;) {
      const operator = (['*', '//', '/', '%'] as const).find((one) => this.takesOperator(one));
      if (operator === undefined) return left;
      left = { kind: 'binary', operator, left, right: this.#power() };
    }
  }

  /** A sign binds closer than a power here, as in Jinja. */
  #power(): Expression {
    let left = this.#unary(true);
    while (this.takesOperator('**'))
      left = { kind: 'binary', operator: '**', left, right: this.#unary(true) };
    return left;
  }

  #unary(takesFilters: boolean): Expression {
    const operator = this.takesOperator('-') ? '-' : this.takesOperator('+') ? '+' : null;
    let value: Expression;
    if (operator === null) value = this.#postfix(this.#primary());
    else value = this.#postfix({ kind: 'unary', operator, operand: this.#unary(false) });
    return takesFilters ? this.#filtersAndTests(value) : value;
  }

  #primary(): Expression {
    const token = this.take();
    if (token.kind === 'name') {
      if (constants.has(token.text))
        return { kind: 'literal', value: constants.get(token.text) ?? null };
      if (reserved.has(token.text)) throw this.wrong(`unexpected '${token.text}'`, token);
      return { kind: 'name', name: token.text };
    }
    if (token.kind === 'string') {
      let { text } = token;
      while (this.peek()?.kind === 'string') text += this.take().text;
      return { kind: 'literal', value: text };
    }
    if (token.kind === 'integer')
      return { kind: 'literal', value: BigInt(token.text.replaceAll('_', '')) };
    if (token.kind === 'float')
      return { kind: 'literal', value: new PyFloat(Number(token.text.replaceAll('_', ''))) };
    if (token.kind === 'operator') return this.#bracketed(token.text);
    throw this.wrong('an expression is missing', token);
  }

  #bracketed(bracket: string): Expression {
    if (bracket === '[') return { kind: 'list', items: this.#expressionsUntil(']') };
    if (bracket === '{') {
      const entries: (readonly [Expression, Expression])[] = [];
      while (!this.takesOperator('}')) {
        if (entries.length > 0) this.expectOperator(',');
        if (this.takesOperator('}')) break;
        const key = this.expression();
        this.expectOperator(':');
        entries.push([key, this.expression()]);
      }
      return { kind: 'dict', entries };
    }
    if (bracket !== '(') throw this.wrong(`unexpected '${bracket}'`);
    if (this.takesOperator(')')) return { kind: 'tuple', items: [] };
    const first = this.expression();
    if (this.takesOperator(')')) return first;
    this.expectOperator(',');
    return { kind: 'tuple', items: [first, ...this.#expressionsUntil(')')] };
  }

  #expressionsUntil(end: string): readonly Expression[] {
    const items: Expression[] = [];
    while (!this.takesOperator(end)) {
      if (items.length > 0) this.expectOperator(',');
      if (this.takesOperator(end)) break;
      items.push(this.expression());
    }
    return items;
  }

  #postfix(start: Expression): Expression {
    let value = start;
    for (;;) {
      if (this.takesOperator('.')) {
        const token = this.take();
        if (token.kind === 'name') value = { kind: 'attribute', target: value, name: token.text };
        else if (token.kind === 'integer')
          value = {
            kind: 'item',
            target: value,
            key: { kind: 'literal', value: BigInt(token.text) },
          };
        else throw this.wrong('a name is missing after the dot', token);
      } else if (this.takesOperator('[')) value = this.#subscript(value);
      else if (this.takesOperator('('))
        value = { kind: 'call', target: value, given: this.#arguments() };
      else return value;
    }
  }

  #subscript(target: Expression): Expression {
    const parts: (Expression | null)[] = [];
    let colons = 0;
    let pending: Expression | null = null;
    while (!this.takesOperator(']')) {
      if (this.takesOperator(':')) {
        parts.push(pending);
        pending = null;
        colons += 1;
      } else pending = this.expression();
    }
    if (colons === 0) {
      if (pending === null) throw this.wrong('an index is missing');
      return { kind: 'item', target, key: pending };
    }
    parts.push(pending);
    const [from = null, to = null, step = null] = parts;
    return { kind: 'slice', target, parts: [from, to, step] };
  }

  #arguments(): GivenArguments {
    const positional: Expression[] = [];
    const named: (readonly [string, Expression])[] = [];
    while (!this.takesOperator(')')) {
      if (positional.length + named.length > 0) this.expectOperator(',');
      if (this.takesOperator(')')) break;
      const token = this.peek();
      const next = this.peek(1);
      if (token?.kind === 'name' && next?.kind === 'operator' && next.text === '=') {
        this.take();
        this.take();
        named.push([token.text, this.expression()]);
      } else positional.push(this.expression());
    }
    return { positional, named };
  }

  #filtersAndTests(start: Expression): Expression {
    let value = start;
    for (;;) {
      if (this.takesOperator('|')) {
        const { name, given } = this.filter();
        value = { kind: 'filter', name, target: value, given };
      } else if (this.takesName('is')) value = this.#test(value);
      else if (this.isOperator('(')) {
        // A filter's result can be called.
        this.take();
        value = { kind: 'call', target: value, given: this.#arguments() };
      } else return value;
    }
  }

  filter(): { readonly name: string; readonly given: GivenArguments } {
    const name = this.expectKind('name');
    const given = this.takesOperator('(') ? this.#arguments() : noArguments;
    return { name, given };
  }

  #test(target: Expression): Expression {
    const isNegated = this.takesName('not');
    const name = this.expectKind('name');
    let given: GivenArguments = noArguments;
    if (this.takesOperator('(')) given = this.#arguments();
    else if (this.#startsArgument())
      given = { positional: [this.#postfix(this.#primary())], named: [] };
    const test: Expression = { kind: 'test', name, target, given };
    return isNegated ? { kind: 'unary', operator: 'not', operand: test } : test;
  }

  /** `x is divisibleby 3`: an argument without brackets. */
  #startsArgument(): boolean {
    const token = this.peek();
    if (token === null) return false;
    if (token.kind === 'name')
      return !['else', 'or', 'and', 'is', 'if', 'in', 'not'].includes(token.text);
    if (token.kind === 'operator') return '[{'.includes(token.text);
    return ['string', 'integer', 'float'].includes(token.kind);
  }
}

const noArguments: GivenArguments = { positional: [], named: [] };
