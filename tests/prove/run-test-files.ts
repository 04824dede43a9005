import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

const repositoryDir = path.resolve(import.meta.dirname, '../..');

/** Runs test files one after the other and prints every case. The exit code is theirs. */
export async function runTestFiles(...files: readonly string[]): Promise<void> {
  await run(process.execPath, ['--test', '--test-concurrency=1', '--test-reporter=spec', ...files]);
}

/** Runs a program in the repository, or in `cwd`, with our terminal; its failure is ours. */
export async function run(
  program: string,
  args: readonly string[],
  cwd = repositoryDir,
): Promise<void> {
  console.log(`$ ${[program === process.execPath ? 'node' : program, ...args].join(' ')}`);
  const child = spawn(program, [...args], { cwd, stdio: 'inherit' });
  const [code] = (await once(child, 'close')) as [number | null];
  if (code !== 0) process.exitCode = 1;
}
