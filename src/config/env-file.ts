/**
 * Variables in the form that dotenv files have, for `--env-file` and `--secrets-file`: a `NAME=value` per line; blank lines and `#` comments are skipped,
 * `export ` is allowed, a value may stand in single quotes (literal) or double quotes (`\n`, `\"`, `\\` understood) and go over several lines in them.
 * Nothing is expanded.
 */
import type { Problems } from './problems.ts';

const line = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*([^]*)$/;

/** What is wrong is named by its line, never by its text: that may be a secret. */
export function parseEnvFile(
  text: string,
  problems: Problems,
  flag = '--env-file',
): Record<string, string> {
  const variables: Record<string, string> = {};
  const lines = text.replace(/^\ufeff/, '').split(/\r?\n/);
  for (let index = 0; index < lines.length; index += 1) {
    const place = `${flag} line ${index + 1}`;
    let trimmed = (lines[index] ?? '').trim();
    if (trimmed === '' || trimmed.startsWith('#')) continue;
    const quote = /^(?:export\s+)?[A-Za-z_][A-Za-z0-9_]*\s*=\s*(["'])/.exec(trimmed)?.[1];
    const from = index;
    while (quote !== undefined && !isClosed(trimmed, quote) && index + 1 < lines.length) {
      index += 1;
      trimmed += `\n${lines[index] ?? ''}`;
    }
    if (quote !== undefined && !isClosed(trimmed, quote)) {
      problems.add(place, 'a quote is not closed', 'Close it, or leave the quotes out.');
      index = from;
      continue;
    }
    const match = line.exec(trimmed);
    if (match?.[1] === undefined) {
      problems.add(place, 'expected NAME=value', 'Write one NAME=value per line.');
      continue;
    }
    variables[match[1]] = unquote(match[2] ?? '');
  }
  return variables;
}

/** Whether the value that begins with the quote ends with it. */
function isClosed(text: string, quote: string): boolean {
  const value = text.slice(text.indexOf(quote) + 1);
  return (quote === "'" ? /'/ : /^(?:[^"\\]|\\[^])*"/).test(value);
}

function unquote(value: string): string {
  const single = /^'([^']*)'\s*(?:#.*)?$/.exec(value);
  if (single?.[1] !== undefined) return single[1];
  const double = /^"((?:[^"\\]|\\[^])*)"\s*(?:#.*)?$/.exec(value);
  if (double?.[1] !== undefined)
    return double[1].replace(/\\([^])/g, (whole, char: string) =>
      char === 'n' ? '\n' : char === '"' || char === '\\' ? char : whole,
    );
  return value.replace(/\s+#.*$/, '').trim();
}
