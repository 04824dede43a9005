/** Values of expressions, with Python's operators. */
import { applyFilter } from './jinja-filters.ts';
import type {
  BinaryOperator,
  CompareOperator,
  Expression,
  FilterChain,
  GivenArguments,
} from './jinja-nodes.ts';
import type { Scope } from './jinja-scope.ts';
import { applyTest } from './jinja-tests.ts';
import { attributeOf, itemAt, sliceOf } from './python-attributes.ts';
import { addition, arithmetic } from './python-arithmetic.ts';
import { compareValues, textOf } from './python-text.ts';
import {
  type Arguments,
  Callable,
  demand,
  isEqual,
  isList,
  isNumber,
  isTrue,
  plainNumber,
  PyFloat,
  TemplateError,
  tupleOf,
  typeName,
  Undefined,
  type Value,
} from './python-values.ts';

export function evaluate(expression: Expression, scope: Scope): Value {
  switch (expression.kind) {
    case 'literal':
      return expression.value;
    case 'name':
      return scope.get(expression.name);
    case 'list':
      return expression.items.map((item) => evaluate(item, scope));
    case 'tuple':
      return tupleOf(...expression.items.map((item) => evaluate(item, scope)));
    case 'dict':
      return new Map(
        expression.entries.map(([key, value]) => [
          textKey(evaluate(key, scope)),
          evaluate(value, scope),
        ]),
      );
    case 'attribute':
      return attributeOf(evaluate(expression.target, scope), expression.name);
    case 'item':
      return itemAt(evaluate(expression.target, scope), evaluate(expression.key, scope));
    case 'slice': {
      const [from, to, step] = expression.parts.map((part) =>
        part === null ? null : evaluate(part, scope),
      );
      return sliceOf(evaluate(expression.target, scope), [from ?? null, to ?? null, step ?? null]);
    }
    case 'call':
      return call(evaluate(expression.target, scope), evaluateArguments(expression.given, scope));
    case 'filter':
      return applyFilter(
        expression.name,
        evaluate(expression.target, scope),
        evaluateArguments(expression.given, scope),
      );
    case 'test':
      return applyTest(
        expression.name,
        evaluate(expression.target, scope),
        evaluateArguments(expression.given, scope),
      );
    case 'unary':
      return unary(expression.operator, evaluate(expression.operand, scope));
    case 'binary':
      return binary(expression, scope);
    case 'compare':
      return compareChain(expression, scope);
    case 'choice':
      if (isTrue(evaluate(expression.condition, scope))) return evaluate(expression.then, scope);
      return expression.otherwise === null
        ? new Undefined(
            'the inline if-expression evaluated to false and no else section was defined.',
          )
        : evaluate(expression.otherwise, scope);
  }
}

export function filtered(start: Value, filters: FilterChain, scope: Scope): Value {
  let value = start;
  for (const { name, given } of filters)
    value = applyFilter(name, value, evaluateArguments(given, scope));
  return value;
}

function evaluateArguments(given: GivenArguments, scope: Scope): Arguments {
  return {
    positional: given.positional.map((argument) => evaluate(argument, scope)),
    named: new Map(given.named.map(([name, argument]) => [name, evaluate(argument, scope)])),
  };
}

function textKey(key: Value): string {
  if (typeof key === 'string') return key;
  throw new TemplateError(`keys of type ${typeName(key)} are not supported in a chat template`);
}

function call(target: Value, given: Arguments): Value {
  if (target instanceof Callable) return target.call(given);
  throw new TemplateError(`'${typeName(demand(target))}' object is not callable`);
}

function unary(operator: 'not' | '-' | '+', operand: Value): Value {
  if (operator === 'not') return !isTrue(operand);
  const value = demand(operand);
  if (!isNumber(value)) throw new TemplateError(`bad operand type for unary ${operator}`);
  const number = plainNumber(value);
  if (operator === '+') return typeof number === 'bigint' ? number : new PyFloat(number);
  return typeof number === 'bigint' ? -number : new PyFloat(-number);
}

function binary(expression: Expression & { readonly kind: 'binary' }, scope: Scope): Value {
  const { operator } = expression;
  const left = evaluate(expression.left, scope);
  if (operator === 'and') return isTrue(left) ? evaluate(expression.right, scope) : left;
  if (operator === 'or') return isTrue(left) ? left : evaluate(expression.right, scope);
  return combine(operator, left, evaluate(expression.right, scope));
}

function combine(operator: Exclude<BinaryOperator, 'and' | 'or'>, a: Value, b: Value): Value {
  if (operator === '~') return textOf(a) + textOf(b);
  const left = demand(a);
  const right = demand(b);
  if (operator === '+') return addition(left, right);
  if (operator === '*') {
    if (typeof right === 'bigint' && (typeof left === 'string' || isList(left)))
      return repeated(left, right);
    if (typeof left === 'bigint' && (typeof right === 'string' || isList(right)))
      return repeated(right, left);
  }
  if (operator === '%' && typeof left === 'string')
    throw new TemplateError('formatting with % is not supported in a chat template');
  return arithmetic(operator, left, right);
}

function repeated(value: string | readonly Value[], count: bigint): Value {
  const times = Math.max(0, Number(count));
  if (typeof value === 'string') return value.repeat(times);
  return Array.from({ length: times }, () => value).flat();
}

function compareChain(expression: Expression & { readonly kind: 'compare' }, scope: Scope): Value {
  let left = evaluate(expression.first, scope);
  for (const [operator, operand] of expression.rest) {
    const right = evaluate(operand, scope);
    if (!compare(operator, left, right)) return false;
    left = right;
  }
  return true;
}

function compare(operator: CompareOperator, left: Value, right: Value): boolean {
  switch (operator) {
    case '==':
      return isEqual(left, right);
    case '!=':
      return !isEqual(left, right);
    case 'in':
      return contains(right, left);
    case 'not in':
      return !contains(right, left);
    case '<':
    case '<=':
    case '>':
    case '>=': {
      const order = compareValues(demand(left), demand(right));
      if (order === null)
        throw new TemplateError(
          `'${operator}' not supported between instances of '${typeName(left)}' and '${typeName(right)}'`,
        );
      if (operator === '<') return order < 0;
      if (operator === '<=') return order <= 0;
      return operator === '>' ? order > 0 : order >= 0;
    }
  }
}

export function contains(container: Value, item: Value): boolean {
  if (typeof container === 'string') {
    if (typeof item === 'string') return container.includes(item);
    throw new TemplateError(`'in <string>' requires string as left operand, not ${typeName(item)}`);
  }
  if (isList(container)) return container.some((one) => isEqual(one, item));
  if (container instanceof Map) return typeof item === 'string' && container.has(item);
  if (container instanceof Undefined) return false;
  throw new TemplateError(`argument of type '${typeName(container)}' is not iterable`);
}
