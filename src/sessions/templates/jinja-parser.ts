/** Parses the statements of a template. What chat templates have no use for, such as including another file, is refused by name. */
import { ExpressionParser } from './jinja-expressions.ts';
import { tokensOf } from './jinja-lexer.ts';
import type { FilterChain, ForStatement, MacroStatement, Statement } from './jinja-nodes.ts';

/** Throws a TemplateError that names the line. */
export function parseTemplate(source: string): readonly Statement[] {
  return new TemplateParser(tokensOf(source)).template();
}

class TemplateParser extends ExpressionParser {
  template(): readonly Statement[] {
    const { body } = this.#body([]);
    return body;
  }

  /** Up to a block with one of these names, which is taken with its brackets still open. */
  #body(ends: readonly string[]): { readonly body: readonly Statement[]; readonly end: string } {
    const body: Statement[] = [];
    for (let token = this.peek(); token !== null; token = this.peek()) {
      this.take();
      if (token.kind === 'text') body.push({ kind: 'text', text: token.text });
      else if (token.kind === 'output-start') {
        body.push({ kind: 'output', value: this.tupleOrExpression() });
        this.#expectEnd('output-end');
      } else if (token.kind === 'block-start') {
        const name = this.expectKind('name');
        if (ends.includes(name)) return { body, end: name };
        body.push(this.#statement(name));
      } else throw this.wrong(`unexpected '${token.text}'`, token);
    }
    if (ends.length > 0) throw this.wrong(`'${ends.at(-1) ?? ''}' is missing`);
    return { body, end: '' };
  }

  /** The body of a block, its own bracket and that of its end included. */
  #closedBody(end: string): readonly Statement[] {
    this.#expectEnd('block-end');
    const { body } = this.#body([end]);
    this.#expectEnd('block-end');
    return body;
  }

  #expectEnd(kind: 'block-end' | 'output-end'): void {
    if (this.peek()?.kind !== kind) throw this.wrong('a closing bracket is missing');
    this.take();
  }

  #statement(name: string): Statement {
    switch (name) {
      case 'if':
        return this.#if();
      case 'for':
        return this.#for();
      case 'set':
        return this.#set();
      case 'macro':
        return this.#macro();
      case 'filter':
        return {
          kind: 'filter-block',
          filters: this.#filters(),
          body: this.#closedBody('endfilter'),
        };
      case 'generation':
        return { kind: 'group', body: this.#closedBody('endgeneration') };
      case 'break':
      case 'continue':
        this.#expectEnd('block-end');
        return { kind: name };
      default:
        throw this.wrong(`the block '${name}' is not supported in a chat template`);
    }
  }

  #if(): Statement {
    const branches: (readonly [
      ReturnType<ExpressionParser['expression']>,
      readonly Statement[],
    ])[] = [];
    for (;;) {
      const condition = this.tupleOrExpression();
      this.#expectEnd('block-end');
      const { body, end } = this.#body(['elif', 'else', 'endif']);
      branches.push([condition, body]);
      if (end === 'elif') continue;
      const otherwise = end === 'else' ? this.#closedBody('endif') : [];
      if (end === 'endif') this.#expectEnd('block-end');
      return { kind: 'if', branches, otherwise };
    }
  }

  #for(): ForStatement {
    const target = this.target();
    if (!this.takesName('in')) throw this.wrong("'in' is missing");
    const items = this.loopItems();
    const condition = this.takesName('if') ? this.expression() : null;
    if (this.isName('recursive')) throw this.wrong('recursive loops are not supported');
    this.#expectEnd('block-end');
    const { body, end } = this.#body(['else', 'endfor']);
    const otherwise = end === 'else' ? this.#closedBody('endfor') : [];
    if (end === 'endfor') this.#expectEnd('block-end');
    return { kind: 'for', target, items, condition, body, otherwise };
  }

  #set(): Statement {
    const target = this.target();
    if (this.takesOperator('=')) {
      const value = this.tupleOrExpression();
      this.#expectEnd('block-end');
      return { kind: 'set', target, value };
    }
    const filters = this.takesOperator('|') ? this.#filters() : [];
    return { kind: 'set-block', target, filters, body: this.#closedBody('endset') };
  }

  #filters(): FilterChain {
    const filters = [this.filter()];
    while (this.takesOperator('|')) filters.push(this.filter());
    return filters;
  }

  #macro(): MacroStatement {
    const name = this.expectKind('name');
    this.expectOperator('(');
    const parameters: MacroStatement['parameters'][number][] = [];
    while (!this.takesOperator(')')) {
      if (parameters.length > 0) this.expectOperator(',');
      const parameter = this.expectKind('name');
      const initial = this.takesOperator('=') ? this.expression() : null;
      parameters.push({ name: parameter, initial });
    }
    return { kind: 'macro', name, parameters, body: this.#closedBody('endmacro') };
  }
}
