/** How values given as flags are read: `key=value` pairs, and the JSON that a value may be. */
import type { Problems } from './problems.ts';

/** `key=value`, trimmed; a missing `=` or an empty key is a problem. The value may contain further `=`. */
function splitPair(
  text: string,
  flag: string,
  problems: Problems,
): readonly [key: string, value: string] | null {
  const at = text.indexOf('=');
  const key = at < 0 ? '' : text.slice(0, at).trim();
  if (key === '') {
    problems.add(flag, 'expected KEY=VALUE', `Write ${flag} KEY=VALUE.`);
    return null;
  }
  return [key, text.slice(at + 1).trim()];
}

const pythonWords: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['True', true],
  ['False', false],
  ['None', null],
]);

/** JSON when it parses, else `True`, `False` and `None`, else the text itself. */
function parseLooseValue(text: string): unknown {
  if (pythonWords.has(text)) return pythonWords.get(text);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}

/** Values of a repeatable `key=value` flag whose values may be JSON. */
export function parseLooseMap(
  values: readonly string[],
  flag: string,
  problems: Problems,
): Record<string, unknown> {
  return Object.fromEntries(
    values.flatMap((text) => {
      const pair = splitPair(text, flag, problems);
      return pair === null ? [] : [[pair[0], parseLooseValue(pair[1])]];
    }),
  );
}

/** Values of a repeatable `key=value` flag whose values stay text: variables. */
export function parseVariables(
  values: readonly string[],
  flag: string,
  problems: Problems,
): Record<string, string> {
  return Object.fromEntries(
    values.flatMap((text) => {
      const pair = splitPair(text, flag, problems);
      return pair === null ? [] : [pair];
    }),
  );
}
