/** Python's arithmetic: integers without end, and fractions. */
import {
  isList,
  isNumber,
  plainNumber,
  PyFloat,
  TemplateError,
  Tuple,
  tupleOf,
  typeName,
  type Value,
} from './python-values.ts';

export function addition(left: Value, right: Value): Value {
  if (typeof left === 'string' && typeof right === 'string') return left + right;
  if (isList(left) && isList(right) && left instanceof Tuple === right instanceof Tuple)
    return left instanceof Tuple ? tupleOf(...left, ...right) : [...left, ...right];
  if (typeof left === 'string')
    throw new TemplateError(`can only concatenate str (not "${typeName(right)}") to str`);
  return arithmetic('+', left, right);
}

export function arithmetic(
  operator: '+' | '-' | '*' | '/' | '//' | '%' | '**',
  left: Value,
  right: Value,
): Value {
  if (!isNumber(left) || !isNumber(right))
    throw new TemplateError(
      `unsupported operand type(s) for ${operator}: '${typeName(left)}' and '${typeName(right)}'`,
    );
  const a = plainNumber(left);
  const b = plainNumber(right);
  if ('/%'.includes(operator.charAt(0)) && Number(b) === 0)
    throw new TemplateError('division by zero');
  if (
    typeof a === 'bigint' &&
    typeof b === 'bigint' &&
    operator !== '/' &&
    (operator !== '**' || b >= 0n)
  )
    return integers(operator, a, b);
  return new PyFloat(fractions(operator, Number(a), Number(b)));
}

function integers(operator: '+' | '-' | '*' | '//' | '%' | '**', a: bigint, b: bigint): bigint {
  switch (operator) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '**':
      return a ** b;
    case '%':
      return ((a % b) + b) % b;
    case '//':
      return (a - (((a % b) + b) % b)) / b;
  }
}

function fractions(
  operator: '+' | '-' | '*' | '/' | '//' | '%' | '**',
  a: number,
  b: number,
): number {
  switch (operator) {
    case '+':
      return a + b;
    case '-':
      return a - b;
    case '*':
      return a * b;
    case '/':
      return a / b;
    case '**':
      return a ** b;
    case '//':
      return Math.floor(a / b);
    case '%':
      return a - b * Math.floor(a / b);
  }
}
