/** Which Python carries out users' code, and what it finds there. */
import path from 'node:path';

export interface PythonInterpreter {
  /** Path of an executable, or its name on PATH. */
  readonly python: string;
  /** Folders in which Python looks for modules, before those of its own. Absolute. */
  readonly path: readonly string[];
}

/** Beside the sources and beside what is compiled of them. */
export const runnerPackageDir = path.resolve(import.meta.dirname, '../../python');

/** It is started as a file: `-m` would look for the library itself in the working folder first. */
export const runnerProgram = path.join('slipway_runner', 'start.py');

/** Variables of the server without its own, keys among them, and with what the runner needs. */
export function runnerVariables(
  { path: own }: PythonInterpreter,
  variables: Readonly<Record<string, string | undefined>>,
): Record<string, string | undefined> {
  const others = Object.entries(variables).filter(([name]) => !name.startsWith('SLIPWAY_'));
  const given = variables['PYTHONPATH'];
  const folders = [runnerPackageDir, ...own, ...(given === undefined ? [] : [given])];
  return {
    ...Object.fromEntries(others),
    ...{ PYTHONPATH: folders.join(path.delimiter), PYTHONUNBUFFERED: '1' },
  };
}
