/** Runners whose role is `asking_role.py`. */
import { chmod, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { RunnerProcess, type RunnerOptions } from '../../src/runner/runner-process.ts';

/** An interpreter that carries out that role whatever it is asked for; written into `dir`. */
export async function askingInterpreter(dir: string): Promise<string> {
  const python = path.join(dir, 'asking-python');
  const role = path.join(import.meta.dirname, 'asking_role.py');
  await writeFile(python, `#!/bin/sh\nexec python3 -u '${role}'\n`);
  await chmod(python, 0o755);
  return python;
}

export function startAsking(python: string, over: Partial<RunnerOptions> = {}): RunnerProcess {
  return new RunnerProcess({
    role: 'workflow',
    interpreter: { python, path: [] },
    settings: {},
    variables: process.env,
    ...over,
  });
}
