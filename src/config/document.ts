import { readFile } from 'node:fs/promises';
import { extname } from 'node:path';
import { parse as parseToml, TomlError } from 'smol-toml';
import { parse as parseYaml } from 'yaml';
import { messageOf, RolloutError } from '../core/errors.ts';

/** Reads a YAML, JSON or TOML file as a plain object. `field` is the flag that named it. CONFIG_INVALID when it is anything else. */
export async function readDocument(path: string, field: string): Promise<Record<string, unknown>> {
  const refuse = (message: string, remedy: string): RolloutError =>
    new RolloutError('CONFIG_INVALID', `${path}: ${message}`, { phase: 'config', field, remedy });
  const parser = parsers.get(extname(path).toLowerCase());
  if (parser === undefined)
    throw refuse('unknown kind of file', 'Use a .yaml, .yml, .json or .toml file.');
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    const reason =
      (error as NodeJS.ErrnoException).code === 'ENOENT' ? 'no such file' : messageOf(error);
    throw refuse(reason, 'Name a file that exists and can be read.');
  }
  let value: unknown;
  try {
    value = parser(text);
  } catch (error) {
    const [what = 'cannot be parsed'] = messageOf(error).split('\n');
    throw refuse(`${what}${lineOf(error)}`, 'Correct its syntax.');
  }
  if (value === null || value === undefined) return {};
  if (typeof value !== 'object' || Array.isArray(value))
    throw refuse('the top level must be a map', 'Write keys and values.');
  return value as Record<string, unknown>;
}

/** The other parsers say it in their messages. */
function lineOf(error: unknown): string {
  return error instanceof TomlError ? ` at line ${error.line}, column ${error.column}` : '';
}

const parsers: ReadonlyMap<string, (text: string) => unknown> = new Map([
  ['.json', (text: string): unknown => JSON.parse(text) as unknown],
  ['.yaml', (text: string): unknown => parseYaml(text) as unknown],
  ['.yml', (text: string): unknown => parseYaml(text) as unknown],
  ['.toml', (text: string): unknown => parseToml(text)],
]);
