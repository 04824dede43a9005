/**
 * The coercions of Harbor's models (Pydantic, lax mode): numeric strings pass for numbers, integral floats for whole
 * numbers, words for booleans; numbers never pass for strings. Unknown keys are dropped by `z.object`. Non-finite numbers are refused.
 */
import { z } from 'zod';

const digits = String.raw`\d+(?:_\d+)*`;
const decimal = new RegExp(
  // Each digit can match in one way only, so that a long text takes no longer than it is.
  String.raw`^[+-]?(?:${digits}(?:\.(?:${digits})?)?|\.${digits})(?:[eE][+-]?${digits})?$`,
);
const whole = new RegExp(String.raw`^[+-]?${digits}(?:\.0+)?$`);

/** A number for text that spells one; anything else as it is. */
function toNumber(value: unknown, spelling: RegExp): unknown {
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'bigint') return Number(value);
  if (typeof value !== 'string') return value;
  const text = value.trim();
  return spelling.test(text) ? Number(text.replaceAll('_', '')) : value;
}

const truths = new Map<unknown, boolean>([
  ...['true', 't', 'yes', 'y', 'on', '1', 1].map((word) => [word, true] as const),
  ...['false', 'f', 'no', 'n', 'off', '0', 0].map((word) => [word, false] as const),
]);

function toBoolean(value: unknown): unknown {
  const key = typeof value === 'string' ? value.toLowerCase() : value;
  return truths.get(key) ?? value;
}

export const laxNumber = z.preprocess((value) => toNumber(value, decimal), z.number());
/** Not `z.int()`: its issue would end the checks of the table around it, and hide what else is wrong there. */
export const laxInteger = z.preprocess(
  (value) => toNumber(value, whole),
  z.number().refine(Number.isSafeInteger, 'expected a whole number'),
);
export const laxBoolean = z.preprocess(toBoolean, z.boolean());

/** A field that may be missing or null; both read as null. */
export function nullable<T extends z.ZodType>(schema: T) {
  return schema.nullish().transform((value): z.output<T> | null => value ?? null);
}
