/**
 * The attributes of one `<keystrokes>` tag, read as loosely as models write them. Every search goes from one `=` to the next and looks back only
 * to the one before, so that it takes linear time whatever stands there.
 */
import { isBlank } from '../strip.ts';

export interface LooseAttribute {
  readonly name: string;
  readonly value: string;
}

type ReadValue = (text: string, at: number) => readonly [value: string, end: number] | null;

/** `name = value` without quotes; the value ends at a blank, a quote or `>`. */
export function unquotedAttributes(text: string): readonly LooseAttribute[] {
  return attributes(text, (_, at) => {
    let end = at;
    while (end < text.length && !isBlank(text.charAt(end)) && !'"\'>'.includes(text.charAt(end)))
      end++;
    return end === at ? null : [text.slice(at, end), end];
  });
}

/** `name = 'value'`. */
export function singleQuotedAttributes(text: string): readonly LooseAttribute[] {
  return attributes(text, (_, at) => {
    if (text.charAt(at) !== "'") return null;
    const end = text.indexOf("'", at + 1);
    return end === -1 ? null : [text.slice(at + 1, end), end + 1];
  });
}

/** Every name before a `=`, also inside quotes. */
export function attributeNames(text: string): readonly string[] {
  return attributes(text, () => ['', 0]).map(({ name }) => name);
}

/** The first quoted value of what ends in `duration`; the quotes need not be of one kind. null = none. */
export function durationValue(text: string): string | null {
  const name = 'duration';
  for (let at = text.indexOf(name); at !== -1; at = text.indexOf(name, at + 1)) {
    const equals = skipBlanks(text, at + name.length);
    if (text.charAt(equals) !== '=') continue;
    const opening = skipBlanks(text, equals + 1);
    if (!isQuote(text.charAt(opening))) continue;
    let closing = opening + 1;
    while (closing < text.length && !isQuote(text.charAt(closing))) closing++;
    // Without another quote no later place has a value either.
    return closing === text.length ? null : text.slice(opening + 1, closing);
  }
  return null;
}

function attributes(text: string, readValue: ReadValue): readonly LooseAttribute[] {
  const found: LooseAttribute[] = [];
  let from = 0;
  for (let at = text.indexOf('='); at !== -1; at = text.indexOf('=', Math.max(at + 1, from))) {
    const name = nameBefore(text, at, from);
    if (name === '') continue;
    const read = readValue(text, skipBlanks(text, at + 1));
    if (read === null) continue;
    found.push({ name, value: read[0] });
    from = Math.max(at + 1, read[1]);
  }
  return found;
}

function nameBefore(text: string, equals: number, from: number): string {
  let end = equals;
  while (end > from && isBlank(text.charAt(end - 1))) end--;
  const word = /[\p{L}\p{N}_]/u;
  let start = end;
  while (start > from) {
    const char = characterBefore(text, start);
    if (start - char.length < from || !word.test(char)) break;
    start -= char.length;
  }
  return text.slice(start, end);
}

function characterBefore(text: string, end: number): string {
  const last = text.charCodeAt(end - 1);
  const isPair = last >= 0xdc00 && last <= 0xdfff && end > 1;
  return text.slice(end - (isPair ? 2 : 1), end);
}

function skipBlanks(text: string, from: number): number {
  let at = from;
  while (isBlank(text.charAt(at))) at++;
  return at;
}

function isQuote(char: string): boolean {
  return char === '"' || char === "'";
}
