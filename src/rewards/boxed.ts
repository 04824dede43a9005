/** The last `\boxed{…}` of a text; of a `\boxed` that is none, or is never closed, nothing. */

const opening = '\\boxed{';

/** null = no `\boxed` at all, or the last one cannot be read. */
export function lastBoxed(text: string): string | null {
  const start = text.lastIndexOf('\\boxed');
  if (start < 0 || !text.startsWith(opening, start)) return null;
  let depth = 0;
  for (let at = start; at < text.length; at++) {
    if (text[at] === '{') depth++;
    else if (text[at] === '}' && --depth === 0) return text.slice(start + opening.length, at);
  }
  return null;
}
