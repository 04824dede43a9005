/**
 * Refusals of a request body in the shape of FastAPI and Pydantic: `{"detail": [{"type", "loc", "msg", "input"}]}`. Values come back only where they
 * are short, and keys never.
 */
import type { z } from 'zod';
import type { ValidationProblem } from '../api/common.ts';
import { secretRequestFields } from './rollout-request.ts';

/** An answer does not send a large body back. */
const maxInputBytes = 1_024;

/** What is wrong with `body`, in the order of the fields. `location`: `body`, or `query` for its parameters. */
export function problemsOf(
  error: z.ZodError,
  body: unknown,
  location: 'body' | 'query' = 'body',
): ValidationProblem[] {
  return error.issues.map((issue) => {
    const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part));
    const value = valueAt(body, path);
    const { type, msg, input, ctx } = describe(issue, value, valueAt(body, path.slice(0, -1)));
    const problem = { type, loc: [location, ...path], msg, input: shown(input, path) };
    return ctx === undefined ? problem : { ...problem, ctx };
  });
}

/** A body that is no JSON, in Python's words. The parser's own would repeat the text around the mistake, and keys may stand there. */
export function malformedJson(error: unknown): ValidationProblem {
  const message = error instanceof Error ? error.message : '';
  const position = Number(/position (\d+)/.exec(message)?.[1] ?? 0);
  const [, said = 'Expecting value'] =
    malformations.find(([pattern]) => pattern.test(message)) ?? [];
  return {
    type: 'json_invalid',
    loc: ['body', position],
    msg: 'JSON decode error',
    input: {},
    ctx: { error: said },
  };
}

const malformations: readonly (readonly [said: RegExp, python: string])[] = [
  [/property name/, 'Expecting property name enclosed in double quotes'],
  [/Expected ','/, "Expecting ',' delimiter"],
  [/Expected ':'/, "Expecting ':' delimiter"],
  [/Unterminated string/, 'Unterminated string'],
  [/control character/, 'Invalid control character'],
  [/after JSON/, 'Extra data'],
];

/** One rule of ours about one field. */
export function brokenRule(
  loc: readonly (string | number)[],
  message: string,
  input: unknown,
): ValidationProblem {
  return {
    type: 'value_error',
    loc: [...loc],
    msg: `Value error, ${message}`,
    input: shown(input, loc),
    ctx: { error: {} },
  };
}

type Described = Pick<ValidationProblem, 'type' | 'msg' | 'input'> & {
  readonly ctx?: Record<string, unknown>;
};

function describe(issue: z.core.$ZodIssue, value: unknown, parent: unknown): Described {
  if (issue.code === 'invalid_type') return wrongType(issue, value, parent);
  if (issue.code === 'too_small' && issue.origin === 'string')
    return {
      type: 'string_too_short',
      msg: `String should have at least ${issue.minimum} character`,
      input: value,
      ctx: { min_length: issue.minimum },
    };
  if (issue.code === 'too_big' && issue.origin === 'array')
    return {
      type: 'too_long',
      msg: `List should have at most ${issue.maximum} items`,
      input: value,
      ctx: { max_length: issue.maximum },
    };
  return {
    type: 'value_error',
    msg: `Value error, ${issue.message}`,
    input: value,
    ctx: { error: {} },
  };
}

const typeRows: Readonly<Record<string, readonly [type: string, msg: string]>> = {
  string: ['string_type', 'Input should be a valid string'],
  array: ['list_type', 'Input should be a valid list'],
  record: ['dict_type', 'Input should be a valid dictionary'],
  boolean: ['bool_type', 'Input should be a valid boolean'],
  number: ['float_type', 'Input should be a valid number'],
  // Only the body itself is one.
  object: [
    'model_attributes_type',
    'Input should be a valid dictionary or object to extract fields from',
  ],
};

function wrongType(issue: z.core.$ZodIssueInvalidType, value: unknown, parent: unknown): Described {
  if (value === undefined)
    return {
      type: 'missing',
      msg: 'Field required',
      input: issue.path.length === 0 ? null : parent,
    };
  if (issue.expected === 'number' && typeof value === 'string') return wrongNumber(value);
  if (issue.expected === 'boolean' && (typeof value === 'string' || typeof value === 'number'))
    return {
      type: 'bool_parsing',
      msg: 'Input should be a valid boolean, unable to interpret input',
      input: value,
    };
  const [type, msg] = typeRows[issue.expected] ?? ['value_error', issue.message];
  return { type, msg, input: value };
}

function wrongNumber(text: string): Described {
  const isNumber = /^[+-]?(?:inf(?:inity)?|nan)$/i.test(text.trim()) || Number(text) === Infinity;
  return isNumber || Number(text) === -Infinity
    ? { type: 'finite_number', msg: 'Input should be a finite number', input: text }
    : {
        type: 'float_parsing',
        msg: 'Input should be a valid number, unable to parse string as a number',
        input: text,
      };
}

function valueAt(value: unknown, path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (part, key) =>
      typeof part === 'object' && part !== null && Object.hasOwn(part, key)
        ? (part as Readonly<Record<string | number, unknown>>)[key]
        : undefined,
    value,
  );
}

/** Of rollouts, and of trials for trainers. */
const secretFields = new Set<string | number>([...secretRequestFields, 'api_key']);

function shown(input: unknown, path: readonly (string | number)[]): unknown {
  if (path.some((part) => secretFields.has(part))) return '[REDACTED]';
  const text = JSON.stringify(input, (key, part: unknown) =>
    secretFields.has(key) && part !== null ? '[REDACTED]' : part,
  ) as string | undefined;
  if (text === undefined) return null;
  const sizeBytes = Buffer.byteLength(text);
  return sizeBytes > maxInputBytes ? `(not repeated: ${sizeBytes} bytes)` : JSON.parse(text);
}
