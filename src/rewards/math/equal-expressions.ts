/**
 * Whether two formulas are the same function. Without roots and variables they are compared as fractions of whole numbers, exactly; else by their values at
 * several points of the complex plane, to twelve digits: two different formulas as short as answers are do not meet at all of them.
 */
import { add, divide, logarithm, multiply, negative, power, real, size } from './complex.ts';
import type { Complex } from './complex.ts';
import { parseExpression, type Expression } from './expression.ts';

/** No power or factorial may grow beyond: an answer is no reason to compute for seconds. */
const maxBits = 20_000;
const maxFactorial = 1_000;
const tolerance = 1e-12;

/** Values for the first variable, the second and so on; nothing is special about them. */
const points: readonly (readonly Complex[])[] = [
  [real(0.7391), real(1.6173)],
  [real(-1.3717), real(0.4519)],
  [
    { re: 0.8713, im: 0.6151 },
    { re: -0.5937, im: 1.2011 },
  ],
  [
    { re: -1.1213, im: -0.7717 },
    { re: 1.3091, im: -0.3373 },
  ],
];

export function equalExpressions(left: string, right: string): boolean {
  if (!isReadable(`(${left})-(${right})`)) return false;
  const one = parseExpression(left);
  const other = parseExpression(right);
  if (one === null || other === null) return false;
  const exact = [exactValue(one), exactValue(other)];
  if (exact[0] && exact[1])
    return exact[0].over * exact[1].under === exact[1].over * exact[0].under;
  return equalValues(one, other);
}

/** Texts in more than two letters are words; of towers and large powers nobody knows how long they take. */
function isReadable(text: string): boolean {
  const letters = new Set(text.replaceAll(/sqrt|frac/g, '').match(/\p{L}/gu));
  return letters.size <= 2 && !/\^[{(]|\^[0-9]+\^|\^[0-9][0-9]+/.test(text);
}

interface Fraction {
  readonly over: bigint;
  readonly under: bigint;
}

const bits = (value: bigint): number => value.toString(16).length * 4;

/** null = it has no exact value here. */
function exactValue(expression: Expression): Fraction | null {
  if (expression.kind === 'number') return decimal(expression.text);
  if (expression.kind === 'name') return null;
  const values = expression.of.map(exactValue);
  if (!values.every((value) => value !== null)) return null;
  const [first, second] = values;
  if (first === undefined) return null;
  switch (expression.kind) {
    case 'sum':
      return limited(values.reduce(fractionSum));
    case 'negative':
      return { over: -first.over, under: first.under };
    case 'product':
      return second === undefined ? null : limited(fractionProduct(first, second));
    case 'quotient':
      if (second === undefined || second.over === 0n) return null;
      return limited(fractionProduct(first, inverse(second)));
    case 'power':
      return second === undefined ? null : fractionPower(first, second);
    case 'factorial':
      return factorial(first);
    case 'sqrt':
    case 'ln':
      return null;
  }
}

function limited(value: Fraction): Fraction | null {
  return bits(value.over) > maxBits || bits(value.under) > maxBits ? null : value;
}

function fractionSum(left: Fraction, right: Fraction): Fraction {
  const over = left.over * right.under + right.over * left.under;
  return { over, under: left.under * right.under };
}

function fractionProduct(left: Fraction, right: Fraction): Fraction {
  return { over: left.over * right.over, under: left.under * right.under };
}

const inverse = (value: Fraction): Fraction => ({ over: value.under, under: value.over });

function fractionPower(base: Fraction, exponent: Fraction): Fraction | null {
  if (exponent.over % exponent.under !== 0n) return null;
  const count = exponent.over / exponent.under;
  const times = count < 0n ? -count : count;
  if (times > BigInt(maxBits)) return null;
  if (Number(times) * Math.max(bits(base.over), bits(base.under)) > maxBits) return null;
  if (count < 0n && base.over === 0n) return null;
  const value = { over: base.over ** times, under: base.under ** times };
  return count < 0n ? inverse(value) : value;
}

function factorial(of: Fraction): Fraction | null {
  if (of.over % of.under !== 0n) return null;
  const count = Number(of.over / of.under);
  if (count < 0 || count > maxFactorial) return null;
  let over = 1n;
  for (let factor = 2; factor <= count; factor++) over *= BigInt(factor);
  return { over, under: 1n };
}

function decimal(text: string): Fraction | null {
  const [, whole = '', part = '', exponent = '0'] =
    /^(\d*)\.?(\d*)(?:e([+-]?\d+))?$/.exec(text) ?? [];
  const shift = Number(exponent) - part.length;
  if (Math.abs(shift) > maxBits / 4) return null;
  const digits = BigInt(`${whole}${part}`);
  const ten = 10n ** BigInt(Math.abs(shift));
  return shift < 0 ? { over: digits, under: ten } : { over: digits * ten, under: 1n };
}

function equalValues(one: Expression, other: Expression): boolean {
  const names = [...new Set([...variables(one), ...variables(other)])];
  return points.every((point) => {
    const values = new Map(names.map((name, place) => [name, point[place] ?? real(0)]));
    const left = valueAt(one, values);
    const right = valueAt(other, values);
    const difference = size(add(left, negative(right)));
    return difference <= tolerance * Math.max(1, size(left), size(right));
  });
}

function variables(expression: Expression): readonly string[] {
  if (expression.kind === 'number') return [];
  if (expression.kind === 'name') return expression.name === 'pi' ? [] : [expression.name];
  return expression.of.flatMap(variables);
}

/** NaN where it has no value: NaN equals nothing. */
function valueAt(expression: Expression, values: ReadonlyMap<string, Complex>): Complex {
  if (expression.kind === 'number') return real(Number(expression.text));
  if (expression.kind === 'name')
    return expression.name === 'pi' ? real(Math.PI) : (values.get(expression.name) ?? real(NaN));
  const of = expression.of.map((part) => valueAt(part, values));
  const [first = real(NaN), second = real(NaN)] = of;
  switch (expression.kind) {
    case 'sum':
      return of.reduce(add);
    case 'negative':
      return negative(first);
    case 'product':
      return multiply(first, second);
    case 'quotient':
      return divide(first, second);
    case 'power':
      return power(first, second);
    case 'sqrt':
      return power(first, real(0.5));
    case 'ln':
      return logarithm(first);
    case 'factorial': {
      const exact = exactValue(expression);
      return real(exact === null ? NaN : Number(exact.over));
    }
  }
}
