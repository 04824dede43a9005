/** `value is name`. */
import { GivenValues } from './python-arguments.ts';
import { contains } from './jinja-evaluate.ts';
import { compareValues } from './python-text.ts';
import {
  type Arguments,
  Callable,
  demand,
  isEqual,
  isList,
  isNumber,
  PyFloat,
  SafeText,
  TemplateError,
  Undefined,
  type Value,
} from './python-values.ts';

type Test = (value: Value, given: GivenValues) => boolean;

const isDefined: Test = (value) => !(value instanceof Undefined);
const isSequence: Test = (value) =>
  typeof value === 'string' || isList(value) || value instanceof Map;
const equals: Test = (value, given) => isEqual(value, given.at(0, 'other') ?? null);
const unequal: Test = (value, given) => !equals(value, given);
const ordered =
  (accepts: (order: number) => boolean): Test =>
  (value, given) => {
    const order = compareValues(demand(value), demand(given.at(0, 'other') ?? null));
    if (order === null) throw new TemplateError('values of these types have no order');
    return accepts(order);
  };
const remainder = (value: Value, divisor: bigint): bigint => {
  if (typeof value !== 'bigint') throw new TemplateError('an integer is needed');
  return ((value % divisor) + divisor) % divisor;
};

const tests = new Map<string, Test>([
  ['defined', isDefined],
  ['undefined', (value) => value instanceof Undefined],
  ['none', (value) => value === null],
  ['true', (value) => value === true],
  ['false', (value) => value === false],
  ['boolean', (value) => typeof value === 'boolean'],
  ['integer', (value) => typeof value === 'bigint'],
  ['float', (value) => value instanceof PyFloat],
  ['number', isNumber],
  ['string', (value) => typeof value === 'string' || value instanceof SafeText],
  ['mapping', (value) => value instanceof Map],
  ['sequence', (value) => isSequence(value, noValues) || value instanceof Undefined],
  ['iterable', (value) => isSequence(value, noValues) || value instanceof Undefined],
  ['callable', (value) => value instanceof Callable],
  ['even', (value) => remainder(value, 2n) === 0n],
  ['odd', (value) => remainder(value, 2n) === 1n],
  ['divisibleby', (value, given) => remainder(value, BigInt(given.integer(0, 'num', 1))) === 0n],
  ['in', (value, given) => contains(given.at(0, 'seq') ?? null, value)],
  ...['eq', 'equalto', '=='].map((name) => [name, equals] as const),
  ...['ne', '!='].map((name) => [name, unequal] as const),
  ...['lt', 'lessthan', '<'].map((name) => [name, ordered((order) => order < 0)] as const),
  ...['gt', 'greaterthan', '>'].map((name) => [name, ordered((order) => order > 0)] as const),
  ...['le', '<='].map((name) => [name, ordered((order) => order <= 0)] as const),
  ...['ge', '>='].map((name) => [name, ordered((order) => order >= 0)] as const),
]);

const noValues = new GivenValues('', { positional: [], named: new Map() });

export function applyTest(name: string, value: Value, given: Arguments): boolean {
  const test = tests.get(name);
  if (test === undefined)
    throw new TemplateError(`the test '${name}' is not supported in a chat template`);
  return test(value, new GivenValues(`the test '${name}'`, given));
}
