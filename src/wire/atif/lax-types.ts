/**
 * The kinds of fields in ATIF, read as Harbor's models read them (Pydantic, lax mode): text that spells a number passes for one, a whole float for an
 * integer, a word for a truth; a number never passes for text. Every problem is kept, in the order of the fields, with Harbor's dotted location.
 * A zod schema says neither the locations of a union nor this order, and checks token ids one object at a time.
 */
import { laxBoolean, laxInteger, laxNumber } from '../harbor/lax.ts';

export interface AtifProblem {
  /** Dotted: `steps.0.message.str`; empty = the document. */
  readonly location: string;
  readonly message: string;
}

/** Answers the value as the format means it, or {@link invalid} after telling at least one problem. */
export type AtifType = (value: unknown, location: string, problems: AtifProblem[]) => unknown;

export const invalid = Symbol('invalid');

export interface AtifField {
  readonly type: AtifType;
  readonly isRequired: boolean;
  readonly isNullable: boolean;
}

/** A rule over a whole object, run when its fields are fine: a sentence about what is wrong, or null. */
export type AtifRule = (fields: Readonly<Record<string, unknown>>) => string | null;

/** As Python names the type of a JSON value. */
function pythonType(value: unknown): string {
  if (typeof value === 'string') return 'str';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'number') return Number.isInteger(value) ? 'int' : 'float';
  return Array.isArray(value) ? 'list' : 'dict';
}

function mistyped(word: string, value: unknown): string {
  return value === null
    ? `expected ${word} type, got null`
    : `expected ${word} type, got ${pythonType(value)}`;
}

function fail(problems: AtifProblem[], location: string, message: string): typeof invalid {
  problems.push({ location, message });
  return invalid;
}

export function joined(location: string, part: string | number): string {
  return location === '' ? String(part) : `${location}.${part}`;
}

export const text: AtifType = (value, location, problems) =>
  typeof value === 'string' ? value : fail(problems, location, mistyped('string', value));

export const anyObject: AtifType = (value, location, problems) =>
  isObject(value) ? value : fail(problems, location, mistyped('dict', value));

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export const truth: AtifType = (value, location, problems) => {
  const read = laxBoolean.safeParse(value);
  return read.success ? read.data : fail(problems, location, 'is neither true nor false');
};

function read(schema: typeof laxNumber, value: unknown): number | null {
  const result = schema.safeParse(value);
  return result.success ? result.data : null;
}

export function integer(least = -Infinity): AtifType {
  return (value, location, problems) => {
    const number =
      typeof value === 'number' && Number.isSafeInteger(value) ? value : read(laxInteger, value);
    if (number !== null)
      return number >= least ? number : fail(problems, location, `is less than ${least}`);
    if (Number.isInteger(value))
      return fail(problems, location, 'is beyond 2^53, where integers lose digits');
    if (typeof value === 'number') return fail(problems, location, 'is no whole number');
    if (typeof value === 'string') return fail(problems, location, 'does not spell a whole number');
    return fail(problems, location, mistyped('int', value));
  };
}

export const decimal: AtifType = (value, location, problems) => {
  const number = typeof value === 'number' ? value : read(laxNumber, value);
  if (number !== null) return number;
  if (typeof value === 'string') return fail(problems, location, 'does not spell a number');
  return fail(problems, location, mistyped('float', value));
};

export function oneOf(words: readonly string[]): AtifType {
  const list = words.map((word) => `'${word}'`).join(', ');
  return (value, location, problems) => {
    if (typeof value === 'string' && words.includes(value)) return value;
    const given =
      value === null ? '' : `, got '${typeof value === 'string' ? value : JSON.stringify(value)}'`;
    return fail(problems, location, `expected one of ${list}${given}`);
  };
}

export function listOf(type: AtifType, least = 0): AtifType {
  return (value, location, problems) => {
    if (!Array.isArray(value)) return fail(problems, location, mistyped('list', value));
    if (value.length < least) return fail(problems, location, `has fewer than ${least} items`);
    const before = problems.length;
    const items = value.map((item, index) => type(item, joined(location, index), problems));
    return problems.length === before ? items : invalid;
  };
}

const plainInteger = integer();

/** As {@link listOf} for numbers, fast for the hundred thousand token ids of a step. */
export function numbers(kind: 'integer' | 'decimal'): AtifType {
  const slow = listOf(kind === 'integer' ? plainInteger : decimal);
  const isPlain = kind === 'integer' ? Number.isSafeInteger : Number.isFinite;
  return (value, location, problems) =>
    Array.isArray(value) && value.every((item) => isPlain(item))
      ? value
      : slow(value, location, problems);
}

/** Several types for one field; when none fits, each tells what it misses, under its name. */
export function anyOf(choices: Readonly<Record<string, AtifType>>): AtifType {
  return (value, location, problems) => {
    const complaints: AtifProblem[] = [];
    for (const [name, type] of Object.entries(choices)) {
      const found = type(value, joined(location, name), complaints);
      if (found !== invalid) return found;
    }
    problems.push(...complaints);
    return invalid;
  };
}

export const required = (type: AtifType): AtifField => ({
  type,
  isRequired: true,
  isNullable: false,
});
/** May be missing or null. */
export const optional = (type: AtifType): AtifField => ({
  type,
  isRequired: false,
  isNullable: true,
});
/** May be missing, not null. */
export const defaulted = (type: AtifType): AtifField => ({
  type,
  isRequired: false,
  isNullable: false,
});

/** An object with these fields and no others; the answer has them in this order, without those that are null. */
export function object(
  name: string,
  fields: Readonly<Record<string, AtifField>>,
  rules: readonly AtifRule[] = [],
): AtifType {
  const known = Object.entries(fields);
  return (value, location, problems) => {
    if (!isObject(value)) return fail(problems, location, `expected an object that is ${name}`);
    const before = problems.length;
    const found: [string, unknown][] = [];
    for (const [key, { type, isRequired, isNullable }] of known) {
      const part = Object.hasOwn(value, key) ? value[key] : undefined;
      if (part === undefined) {
        if (isRequired) fail(problems, joined(location, key), 'required field is missing');
      } else if (part !== null || !isNullable)
        found.push([key, type(part, joined(location, key), problems)]);
    }
    for (const key of Object.keys(value))
      if (!Object.hasOwn(fields, key))
        fail(problems, joined(location, key), 'unexpected field (not part of ATIF schema)');
    if (problems.length > before) return invalid;
    const answer = Object.fromEntries(found);
    for (const rule of rules) {
      const complaint = rule(answer);
      if (complaint !== null) return fail(problems, location, `Value error, ${complaint}`);
    }
    return answer;
  };
}
