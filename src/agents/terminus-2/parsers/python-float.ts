import { strip } from '../strip.ts';

const decimal =
  /^[+-]?(?:\d+(?:_\d+)*(?:\.(?:\d+(?:_\d+)*)?)?|\.\d+(?:_\d+)*)(?:e[+-]?\d+(?:_\d+)*)?$/;
const infinite = /^([+-]?)inf(?:inity)?$/;

/** A number as Python's `float` reads it from a text; null = it is none, or not a number. */
export function pythonFloat(text: string): number | null {
  const spelt = strip(text).toLowerCase();
  if (decimal.test(spelt)) return Number(spelt.replaceAll('_', ''));
  const sign = infinite.exec(spelt)?.[1];
  if (sign === undefined) return null;
  return sign === '-' ? -Infinity : Infinity;
}
