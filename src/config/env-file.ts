/**
 * A file of `NAME=value` lines for `--env-file`: blank lines and `#` comments are skipped, `export ` is allowed, a value may stand in
 * single quotes (literal) or double quotes (`\n`, `\"`, `\\` understood). Nothing is expanded.
 */
import type { Problems } from './problems.ts';

const line = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*)$/;

export function parseEnvFile(text: string, problems: Problems): Record<string, string> {
  const variables: Record<string, string> = {};
  text.split(/\r?\n/).forEach((raw, index) => {
    const trimmed = raw.trim();
    if (trimmed === '' || trimmed.startsWith('#')) return;
    const match = line.exec(trimmed);
    if (match?.[1] === undefined) {
      problems.add(
        `--env-file line ${index + 1}`,
        'expected NAME=value',
        'Write one NAME=value per line.',
      );
      return;
    }
    variables[match[1]] = unquote(match[2] ?? '');
  });
  return variables;
}

function unquote(value: string): string {
  const single = /^'([^']*)'\s*(?:#.*)?$/.exec(value);
  if (single?.[1] !== undefined) return single[1];
  const double = /^"((?:[^"\\]|\\.)*)"\s*(?:#.*)?$/.exec(value);
  if (double?.[1] !== undefined)
    return double[1].replace(/\\(.)/g, (whole, char: string) =>
      char === 'n' ? '\n' : char === '"' || char === '\\' ? char : whole,
    );
  return value.replace(/\s+#.*$/, '').trim();
}
