/** Where the Python of an agent is, from the variables of this process. */
import path from 'node:path';
import type { PythonInterpreter } from '../../runner/interpreter.ts';
import { pythonVariable } from '../shared/python-variable.ts';

type Variables = Readonly<Record<string, string | undefined>>;

export const pythonPathVariable = 'SLIPWAY_PYTHONPATH';

export function interpreterOf(variables: Variables): PythonInterpreter {
  const named = variables[pythonVariable] ?? '';
  const folders = (variables[pythonPathVariable] ?? '').split(path.delimiter);
  return {
    python: named === '' ? 'python3' : named,
    path: folders.filter((folder) => folder !== '').map((folder) => path.resolve(folder)),
  };
}
