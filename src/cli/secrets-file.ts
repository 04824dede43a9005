/** `--secrets-file`: variables that are in no configuration, on no command line and in nothing that is written. */
import { readFile, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { text as readAll } from 'node:stream/consumers';
import { parseEnvFile } from '../config/env-file.ts';
import { Problems } from '../config/problems.ts';
import { RolloutError } from '../core/errors.ts';

const flag = '--secrets-file';

/** `-` = standard input. CONFIG_INVALID names the line that is none, and never what it holds. */
export async function readSecretsFile(
  path: string,
  { cwd, warn }: { readonly cwd: string; readonly warn: (text: string) => void },
): Promise<Record<string, string>> {
  const text =
    path === '-' ? await readAll(process.stdin) : await readFileOf(resolve(cwd, path), warn);
  const problems = new Problems();
  const variables = parseEnvFile(text, problems, flag);
  problems.throwIfAny();
  return variables;
}

async function readFileOf(file: string, warn: (text: string) => void): Promise<string> {
  try {
    const found = await stat(file);
    if (found.isFile() && (found.mode & 0o077) !== 0)
      warn(`${file} is open to others than its owner: chmod 600 it`);
    return await readFile(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new RolloutError(
      'CONFIG_INVALID',
      `${file}: ${code === 'ENOENT' ? 'no such file' : `cannot be read (${code ?? ''})`}`,
      {
        ...{ phase: 'config', field: flag, cause: error },
        remedy: 'Name a file that exists and can be read, or - for standard input.',
      },
    );
  }
}
