/**
 * ATIF as text: two spaces of indent, arrays of numbers on one line, everything beyond ASCII escaped. A number keeps its bits: `-0` is written as
 * `-0.0`, and what is not finite is refused, because JSON has no word for it.
 */
import { RolloutError } from '../../core/errors.ts';

const beyondAscii = /[\u007f-\uffff]/g;

/** `level`: how deep the value stands, for its indent; null = all on one line. TRAJECTORY_INVALID names the field under `path`. */
export function atifText(value: unknown, level: number | null, path: string): string {
  if (typeof value === 'string') return stringText(value);
  if (typeof value === 'number') return numberText(value, path);
  if (typeof value === 'boolean') return String(value);
  if (Array.isArray(value)) return arrayText(value, level, path);
  if (typeof value === 'object' && value !== null) return objectText(value, level, path);
  return 'null';
}

export function stringText(text: string): string {
  return JSON.stringify(text).replace(
    beyondAscii,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function numberText(value: number, path: string): string {
  if (!Number.isFinite(value))
    throw new RolloutError('TRAJECTORY_INVALID', `${path} is ${value}, which JSON cannot say`, {
      phase: 'collect',
      field: path,
    });
  return Object.is(value, -0) ? '-0.0' : String(value);
}

function arrayText(items: readonly unknown[], level: number | null, path: string): string {
  if (items.length === 0) return '[]';
  if (items.every((item) => typeof item === 'number')) return numbersText(items, level, path);
  const inner = deeper(level);
  const texts = items.map((item, index) => atifText(item, inner, `${path}.${index}`));
  return wrapped(['[', ']'], texts, level);
}

/** The place of each number, of a hundred thousand, is only spelled out for the one that is refused. */
function numbersText(items: readonly number[], level: number | null, path: string): string {
  const bad = items.findIndex((item) => !Number.isFinite(item));
  if (bad >= 0) numberText(items[bad] ?? NaN, `${path}.${bad}`);
  const hasNegativeZero = items.some((item) => Object.is(item, -0));
  const texts = hasNegativeZero ? items.map((item) => numberText(item, path)) : items;
  return `[${texts.join(level === null ? ',' : ', ')}]`;
}

function objectText(value: object, level: number | null, path: string): string {
  const texts = Object.entries(value)
    .filter(([, part]) => part !== undefined)
    .map(([key, part]: [string, unknown]) => {
      const text = atifText(part, deeper(level), `${path}.${key}`);
      return `${stringText(key)}:${level === null ? '' : ' '}${text}`;
    });
  return texts.length === 0 ? '{}' : wrapped(['{', '}'], texts, level);
}

function deeper(level: number | null): number | null {
  return level === null ? null : level + 1;
}

function wrapped(
  [open, close]: readonly [string, string],
  texts: readonly string[],
  level: number | null,
): string {
  if (level === null) return `${open}${texts.join(',')}${close}`;
  const indent = '  '.repeat(level);
  return `${open}\n${indent}  ${texts.join(`,\n${indent}  `)}\n${indent}${close}`;
}
