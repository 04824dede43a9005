/** Runs a parsed template. The output is a list of pieces of text. */
import { evaluate, filtered } from './jinja-evaluate.ts';
import type { ForStatement, MacroStatement, Statement, Target } from './jinja-nodes.ts';
import { Scope } from './jinja-scope.ts';
import { textOf } from './python-text.ts';
import {
  type Arguments,
  Callable,
  type Dict,
  isEqual,
  isTrue,
  itemsOf,
  TemplateError,
  Undefined,
  type Value,
} from './python-values.ts';

/** Throws a TemplateError for what the template refuses, or cannot do with these variables. */
export function runTemplate(statements: readonly Statement[], variables: Dict): string {
  const out: string[] = [];
  const end = runAll(statements, new Scope(variables), out);
  if (end !== null) throw new TemplateError(`'${end}' stands outside a loop`);
  return out.join('');
}

/** How a loop's round ended early. */
type Jump = 'break' | 'continue' | null;

function runAll(statements: readonly Statement[], scope: Scope, out: string[]): Jump {
  for (const statement of statements) {
    const jump = run(statement, scope, out);
    if (jump !== null) return jump;
  }
  return null;
}

function run(statement: Statement, scope: Scope, out: string[]): Jump {
  switch (statement.kind) {
    case 'text':
      out.push(statement.text);
      return null;
    case 'output':
      out.push(textOf(evaluate(statement.value, scope)));
      return null;
    case 'if': {
      for (const [condition, body] of statement.branches)
        if (isTrue(evaluate(condition, scope))) return runAll(body, scope, out);
      return runAll(statement.otherwise, scope, out);
    }
    case 'for':
      runLoop(statement, scope, out);
      return null;
    case 'set':
      assign(statement.target, evaluate(statement.value, scope), scope);
      return null;
    case 'set-block': {
      const text = runInside(statement.body, scope);
      assign(statement.target, filtered(text, statement.filters, scope), scope);
      return null;
    }
    case 'filter-block':
      out.push(textOf(filtered(runInside(statement.body, scope), statement.filters, scope)));
      return null;
    case 'macro':
      scope.set(statement.name, macro(statement, scope));
      return null;
    case 'group':
      return runAll(statement.body, scope, out);
    case 'break':
    case 'continue':
      return statement.kind;
  }
}

function runInside(body: readonly Statement[], scope: Scope): string {
  const out: string[] = [];
  if (runAll(body, new Scope(scope), out) !== null)
    throw new TemplateError('a loop is left from inside another block');
  return out.join('');
}

function runLoop(statement: ForStatement, scope: Scope, out: string[]): void {
  const items = chosenItems(statement, scope);
  if (items.length === 0) {
    runAll(statement.otherwise, new Scope(scope), out);
    return;
  }
  let changedFrom: readonly Value[] | null = null;
  const changed = new Callable('changed', ({ positional }) => {
    const isChanged = changedFrom === null || !isEqual(changedFrom, positional);
    changedFrom = positional;
    return isChanged;
  });
  for (const [index, item] of items.entries()) {
    const round = new Scope(scope);
    round.set('loop', loopState(items, index, changed));
    assign(statement.target, item, round);
    if (runAll(statement.body, round, out) === 'break') return;
  }
}

function chosenItems(statement: ForStatement, scope: Scope): readonly Value[] {
  const items = itemsOf(evaluate(statement.items, scope));
  const { condition, target } = statement;
  if (condition === null) return items;
  return items.filter((item) => {
    const inner = new Scope(scope);
    assign(target, item, inner);
    return isTrue(evaluate(condition, inner));
  });
}

function loopState(items: readonly Value[], index: number, changed: Callable): Value {
  const count = items.length;
  const neighbour = (at: number, name: string): Value =>
    at < 0 || at >= count ? new Undefined(`there is no ${name} item`) : (items[at] ?? null);
  const attributes: Dict = new Map<string, Value>([
    ['index', BigInt(index + 1)],
    ['index0', BigInt(index)],
    ['revindex', BigInt(count - index)],
    ['revindex0', BigInt(count - index - 1)],
    ['first', index === 0],
    ['last', index === count - 1],
    ['length', BigInt(count)],
    ['previtem', neighbour(index - 1, 'previous')],
    ['nextitem', neighbour(index + 1, 'next')],
    ['changed', changed],
    [
      'cycle',
      new Callable('cycle', ({ positional }) => positional[index % positional.length] ?? null),
    ],
  ]);
  return new Callable('loop', refuseCall, attributes);
}

const refuseCall = (): never => {
  throw new TemplateError('recursive loops are not supported');
};

function assign(target: Target, value: Value, scope: Scope): void {
  switch (target.kind) {
    case 'name':
      scope.set(target.name, value);
      return;
    case 'field':
      scope.setField(target.namespace, target.name, value);
      return;
    case 'several': {
      const items = itemsOf(value);
      if (items.length !== target.targets.length)
        throw new TemplateError(
          `cannot unpack ${items.length} values into ${target.targets.length}`,
        );
      for (const [index, one] of target.targets.entries()) assign(one, items[index] ?? null, scope);
    }
  }
}

function macro(statement: MacroStatement, scope: Scope): Callable {
  const { name, parameters } = statement;
  return new Callable(name, (given) => {
    const inner = new Scope(scope);
    refuseSurplus(statement, given);
    for (const [index, parameter] of parameters.entries()) {
      const { positional, named } = given;
      const value = index < positional.length ? positional[index] : named.get(parameter.name);
      if (value !== undefined) inner.set(parameter.name, value);
      else if (parameter.initial === null)
        inner.set(parameter.name, new Undefined(`parameter '${parameter.name}' was not provided`));
      else inner.set(parameter.name, evaluate(parameter.initial, inner));
    }
    return runInside(statement.body, inner);
  });
}

function refuseSurplus({ name, parameters }: MacroStatement, given: Arguments): void {
  const names = new Set(parameters.map((parameter) => parameter.name));
  const unknown = [...given.named.keys()].find((key) => !names.has(key));
  if (unknown !== undefined)
    throw new TemplateError(`macro '${name}' takes no keyword argument '${unknown}'`);
  if (given.positional.length > parameters.length)
    throw new TemplateError(`macro '${name}' takes not more than ${parameters.length} arguments`);
}
