/** The ways in which text spells a secret. */

/** How deep text may lie inside JSON strings inside JSON strings. */
const deepest = 3;

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
