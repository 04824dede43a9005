/** The ways in which text spells a secret. */

/** How deep text may lie inside JSON strings inside JSON strings. */
const deepest = 3;
/** Of a shorter one that lies over two lines, both ends may be there by chance. */
const minWrappedLength = 12;

/**
 * Every spelling to look for, the longest first, so that one inside another leaves no piece of it: the secret itself, and as it stands inside
 * a JSON string, with and without everything beyond ASCII escaped.
 */
export function spellingsOf(secrets: readonly string[]): readonly string[] {
  const all = new Set<string>();
  for (const secret of secrets) {
    let level = new Set([secret]);
    for (let depth = 0; depth <= deepest; depth += 1) {
      for (const text of level) if (text !== '') all.add(text);
      level = new Set([...level].flatMap(escapedForms));
    }
  }
  return [...all].sort((a, b) => b.length - a.length);
}

function escapedForms(text: string): readonly string[] {
  const plain = JSON.stringify(text).slice(1, -1);
  const escape = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
  const ascii = plain.replace(/[\u007f-\uffff]/g, escape);
  const upper = ascii.replace(/\\u[0-9a-f]{4}/g, (unit) => `\\u${unit.slice(2).toUpperCase()}`);
  return [plain, ascii, upper, plain.replaceAll('/', '\\/')];
}

/** Secrets that are looked for over the ends of lines, the longest first. */
export function wrappableOf(secrets: readonly string[]): readonly string[] {
  return secrets
    .filter(({ length }) => length >= minWrappedLength)
    .sort((a, b) => b.length - a.length);
}

/** Replaces secrets that lie over several lines: a terminal breaks them at its edge, also within a word. An empty line is no such break. */
export function replaceWrapped(
  text: string,
  secrets: readonly string[],
  replacement: string,
): string {
  if (secrets.length === 0 || !text.includes('\n')) return text;
  const joined = text.replaceAll('\n', '');
  return secrets
    .filter((secret) => joined.includes(secret))
    .reduce((result, secret) => replaceOne(result, secret, replacement), text);
}

function replaceOne(text: string, secret: string, replacement: string): string {
  const joined = text.replaceAll('\n', '');
  const places = placesBesidesBreaks(text);
  let result = '';
  let from = 0;
  for (
    let at = joined.indexOf(secret);
    at !== -1;
    at = joined.indexOf(secret, at + secret.length)
  ) {
    const start = places[at] ?? 0;
    const end = (places[at + secret.length - 1] ?? 0) + 1;
    if (text.slice(start, end).includes('\n\n')) continue;
    result += text.slice(from, start) + replacement;
    from = end;
  }
  return result + text.slice(from);
}

/** Where in the text each unit stands that is no line break. */
function placesBesidesBreaks(text: string): Uint32Array {
  const places = new Uint32Array(text.length);
  let count = 0;
  for (let at = 0; at < text.length; at += 1)
    if (text.charAt(at) !== '\n') {
      places[count] = at;
      count += 1;
    }
  return places;
}
