/**
 * The lines of an HTTP/1.1 head, read more strictly than most programs read them: what two readers could understand in two ways is no head. No
 * lone CR or LF, no folded lines, no control characters, no space before a colon.
 */

/** Beyond it a head is refused. */
export const headLimitBytes = 16 * 1024;

/** Names in lower case and values in turn. */
export type HeaderList = readonly string[];

const forbidden = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f]|\r(?!\n)|(?<!\r)\n/;
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
const forbiddenInValue = /[^\t\u0020-\u007e\u0080-\u00ff]/;

export interface HeadLines {
  readonly first: string;
  /** As they are spelled. */
  readonly headers: string[];
}

/** `text` is Latin-1 without the empty line at its end; null = no head. */
export function headLines(text: string): HeadLines | null {
  if (forbidden.test(text)) return null;
  const firstEnd = text.indexOf('\r\n');
  const first = firstEnd === -1 ? text : text.slice(0, firstEnd);
  const headers: string[] = [];
  let at = firstEnd === -1 ? text.length : firstEnd + 2;
  while (at < text.length) {
    const found = text.indexOf('\r\n', at);
    const end = found === -1 ? text.length : found;
    const colon = text.indexOf(':', at);
    if (colon === -1 || colon > end) return null;
    const name = text.slice(at, colon);
    if (!token.test(name)) return null;
    headers.push(name, trimmed(text, colon + 1, end));
    at = end + 2;
  }
  return { first, headers };
}

/** True = it can stand in a head without becoming more than a header. */
export function isHeader(name: string, value: string): boolean {
  return token.test(name) && !forbiddenInValue.test(value);
}

/** Digits alone, and few enough to be counted exactly; null = no length. */
export function lengthOf(value: string): number | null {
  return /^\d{1,15}$/.test(value) ? Number(value) : null;
}

/** Spaces and tabs only: other characters that look like a space belong to the value. */
function trimmed(text: string, from: number, to: number): string {
  let [start, end] = [from, to];
  while (start < end && isBlank(text.charCodeAt(start))) start += 1;
  while (end > start && isBlank(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(start, end);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}
