import type { ServiceAccess } from '../environments/environment.ts';
import { quote } from './shell-quote.ts';

/** What lies at a path: `empty` is a folder without entries, `unknown` means nobody could be asked. */
export type PathKind = 'file' | 'directory' | 'empty' | 'missing' | 'unknown';

const probeLimitMs = 10_000;
const kinds: Readonly<Record<string, PathKind>> = {
  f: 'file',
  d: 'directory',
  e: 'empty',
  m: 'missing',
};

/** Asks for all paths in one command, as root. */
export async function probePaths(
  access: Pick<ServiceAccess, 'exec'>,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<readonly PathKind[]> {
  const lines = paths.map((path) => {
    const quoted = quote(path);
    const folder = `if [ -n "$(ls -A ${quoted})" ]; then echo d; else echo e; fi`;
    return `if [ -d ${quoted} ]; then ${folder}; elif [ -e ${quoted} ]; then echo f; else echo m; fi`;
  });
  try {
    const { exitCode, stdout } = await access.exec(
      { command: lines.join('\n'), user: 'root', timeoutMs: probeLimitMs },
      signal,
    );
    const answers = stdout.trim().split('\n');
    if (exitCode === 0 && answers.length === paths.length)
      return answers.map((answer) => kinds[answer] ?? 'unknown');
  } catch {
    signal.throwIfAborted();
  }
  return paths.map(() => 'unknown');
}
