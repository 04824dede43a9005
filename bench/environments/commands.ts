import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Runs a program to its end; a failure carries what it printed. */
export async function command(
  program: string,
  args: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { stdout } = await run(program, [...args], {
    env: { ...process.env, ...variables },
    maxBuffer: 64 * 1024 * 1024,
  });
  return stdout;
}
