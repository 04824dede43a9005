import type { Problems } from './problems.ts';
import type { FlagValues, RunFlag } from './run-flags.ts';

/** The value of a list flag. */
export function listOf(flags: FlagValues, name: RunFlag['name']): readonly string[] {
  const value = flags[name];
  return Array.isArray(value) ? (value as readonly string[]) : [];
}

/** The value of a text flag; null when it was not given. */
export function textOf(flags: FlagValues, name: RunFlag['name']): string | null {
  const value = flags[name];
  return typeof value === 'string' ? value : null;
}

/** The number behind a flag, or null after adding a problem. */
export function parseNumber(text: string, flag: RunFlag, problems: Problems): number | null {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  const isWhole = flag.kind !== 'integer' || Number.isSafeInteger(value);
  if (Number.isFinite(value) && isWhole && value >= (flag.min ?? -Infinity)) return value;
  const kind = flag.kind === 'integer' ? 'a whole number' : 'a number';
  const bound = flag.min === undefined ? '' : ` of at least ${flag.min}`;
  problems.add(flag.name, `“${text}” is not ${kind}${bound}`, `Give ${kind}${bound}.`);
  return null;
}
