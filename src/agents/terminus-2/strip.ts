/**
 * Blanks as Python's `str.strip` counts them, which other runtimes of this agent use: the control characters U+001C to U+001F and U+0085 are
 * blank, a byte order mark is not. JavaScript's `trim` decides both the other way.
 */
const blanks = new Set(
  '\t\n\v\f\r\u001c\u001d\u001e\u001f \u0085\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000',
);

export function isBlank(char: string): boolean {
  return blanks.has(char);
}

/** Where the first character that is not blank stands; the length of a text that has none. */
export function leadingBlanks(text: string): number {
  let start = 0;
  while (start < text.length && isBlank(text.charAt(start))) start++;
  return start;
}

export function strip(text: string): string {
  const start = leadingBlanks(text);
  let end = text.length;
  while (end > start && isBlank(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

export function isOnlyBlanks(text: string): boolean {
  return leadingBlanks(text) === text.length;
}
