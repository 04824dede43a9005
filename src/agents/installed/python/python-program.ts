/** What descriptions of agents from PyPI have in common. */
import type { PythonNeeds } from '../../agent.ts';
import type { Cli } from '../cli.ts';
import { programAt } from '../places.ts';
import { packagesFolder } from './own-python.ts';

export interface PythonPackage {
  /** Of the agent. */
  readonly name: string;
  /** On PyPI. */
  readonly distribution: string;
  /** Of the description, which `lock` belongs to. */
  readonly version: string;
  /** Its command. */
  readonly script: string;
  readonly pythons: PythonNeeds['versions'];
  readonly lock: readonly string[];
}

export function pythonProgram({
  name,
  distribution,
  version,
  script,
  pythons,
  lock,
}: PythonPackage): Pick<
  Cli,
  'programs' | 'programPath' | 'interpreterPath' | 'versionCommand' | 'versionPattern'
> {
  const interpreterPath = 'bin/python3';
  const question = `from importlib.metadata import version; print(version("${distribution}"))`;
  return {
    programs: (wanted) => [
      {
        name,
        packages: [`${distribution}==${wanted}`],
        python: { versions: pythons, lock: wanted === version ? lock : null },
      },
    ],
    programPath:
      process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch)
        ? `${packagesFolder}/bin/${script}`
        : null,
    interpreterPath,
    // Some programs have no such option, and all take a second or more to load.
    versionCommand: `${programAt(name)}/${interpreterPath} -c '${question}'`,
    versionPattern: /^(\d+\.\d+\S*)/,
  };
}
