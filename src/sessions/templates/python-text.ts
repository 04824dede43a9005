/** Text of values as Python prints it, and what Python takes for white space. */
import {
  compareNumbers,
  isList,
  PyFloat,
  SafeText,
  Tuple,
  Undefined,
  type Value,
} from './python-values.ts';

/** `str.isspace` and the `\s` of Python's patterns: neither is JavaScript's. */
export const pythonSpaces =
  '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000';

const spacesInFront = new RegExp(`^[${pythonSpaces}]+`, 'u');
const spacesBehind = new RegExp(`[${pythonSpaces}]+$`, 'u');

export type Side = 'both' | 'left' | 'right';

/** `chars`: a set of characters; null = white space. */
export function strip(text: string, chars: string | null, side: Side = 'both'): string {
  if (chars !== null) return stripSet(text, new Set(chars), side);
  const left = side === 'right' ? text : text.replace(spacesInFront, '');
  if (side === 'left' || left === '') return left;
  // A search for spaces at the end would start at every run of them: look only where the text ends in one.
  let end = left.length;
  while (end > 0 && spacesBehind.test(left.charAt(end - 1))) end--;
  return left.slice(0, end);
}

function stripSet(text: string, set: ReadonlySet<string>, side: Side): string {
  const chars = Array.from(text);
  let start = 0;
  let end = chars.length;
  if (side !== 'right') while (start < end && set.has(chars[start] ?? '')) start++;
  if (side !== 'left') while (end > start && set.has(chars[end - 1] ?? '')) end--;
  return chars.slice(start, end).join('');
}

export function textOf(value: Value): string {
  if (typeof value === 'string') return value;
  if (value instanceof SafeText) return value.text;
  return value instanceof Undefined ? '' : representation(value);
}

/** `repr`. */
export function representation(value: Value): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'bigint') return value.toString();
  if (typeof value === 'string') return quoted(value);
  if (value instanceof PyFloat) return floatText(value.value);
  if (value instanceof Undefined) return 'Undefined';
  if (isList(value)) return listText(value);
  if (value instanceof Map) {
    const parts = [...value].map(([key, item]) => `${quoted(key)}: ${representation(item)}`);
    return `{${parts.join(', ')}}`;
  }
  // An address in memory would stand there.
  throw new TypeError('the text of a function or namespace differs from run to run');
}

function listText(list: readonly Value[]): string {
  const inner = list.map(representation).join(', ');
  if (!(list instanceof Tuple)) return `[${inner}]`;
  return list.length === 1 ? `(${inner},)` : `(${inner})`;
}

const unprintable = /[\p{C}\p{Z}]/u;
const escapes = new Map([
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
  ['\\', '\\\\'],
]);

function quoted(text: string): string {
  const mark = text.includes("'") && !text.includes('"') ? '"' : "'";
  let out = mark;
  for (const char of text) {
    const known = escapes.get(char);
    if (known !== undefined) out += known;
    else if (char === mark) out += `\\${char}`;
    else if (char !== ' ' && unprintable.test(char)) out += escaped(char);
    else out += char;
  }
  return out + mark;
}

function escaped(char: string): string {
  const code = char.codePointAt(0) ?? 0;
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, '0')}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
}

/** `repr` of a float: the same shortest digits as JavaScript's, but other bounds for the exponent, and always a mark of a fraction. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? 'inf' : '-inf';
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  const [mantissa = '0', power = '0'] = Math.abs(value).toExponential().split('e');
  const digits = mantissa.replace('.', '');
  const exponent = Number(power);
  if (exponent < -4 || exponent >= 16) {
    const fraction = digits.length > 1 ? `.${digits.slice(1)}` : '';
    const size = Math.abs(exponent).toString().padStart(2, '0');
    return `${sign}${digits.charAt(0)}${fraction}e${exponent < 0 ? '-' : '+'}${size}`;
  }
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0');
  return `${sign}${whole}.${digits.slice(exponent + 1) || '0'}`;
}

/** By code points, as Python orders text. */
export function compareText(left: string, right: string): number {
  const a = Array.from(left);
  const b = Array.from(right);
  for (let index = 0; index < Math.min(a.length, b.length); index++) {
    const difference = (a[index]?.codePointAt(0) ?? 0) - (b[index]?.codePointAt(0) ?? 0);
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Order of numbers, texts and lists of them; null = they have none. */
export function compareValues(left: Value, right: Value): number | null {
  if (typeof left === 'string' && typeof right === 'string') return compareText(left, right);
  if (isList(left) && isList(right)) {
    for (let index = 0; index < Math.min(left.length, right.length); index++) {
      const order = compareValues(left[index] ?? null, right[index] ?? null);
      if (order !== 0) return order;
    }
    return left.length - right.length;
  }
  const areNumbers =
    (typeof left === 'bigint' || typeof left === 'boolean' || left instanceof PyFloat) &&
    (typeof right === 'bigint' || typeof right === 'boolean' || right instanceof PyFloat);
  return areNumbers ? compareNumbers(left, right) : null;
}
