/** Packages of PyPI, in a folder with a Python of their own. Only wheels are taken, and nothing of them is executed while they are installed. */
import { messageOf } from '../../../core/errors.ts';
import path from 'node:path';
import { programAt } from '../places.ts';
import type { AgentProgram, PythonNeeds } from '../../agent.ts';
import { notInstalled } from '../install-error.ts';
import type { InstallerParts } from '../program-runner.ts';
import { findPython } from './host-python.ts';
import { copyLibraries, copyPython, linkedFiles, packagesFolder } from './own-python.ts';

type Site = { readonly dir: string; readonly signal: AbortSignal };

const registryRemedy = 'Have PyPI within reach for the first run; later runs do not need it.';
const libraryRemedy =
  'Install on a machine with the GNU C library 2.33 or newer (Debian 12, Ubuntu 22.04 and later ones).';

/** Throws AGENT_SETUP_FAILED. */
export async function installFromPypi(
  program: AgentProgram & { readonly python: PythonNeeds },
  parts: InstallerParts,
  { dir, signal }: Site,
): Promise<void> {
  const { variables, extraCaBundle } = parts;
  const python = await findPython(program, parts, signal);
  const run = async (...argv: readonly [string, ...string[]]) => {
    try {
      return await parts.run(argv, {
        ...{ cwd: dir, signal },
        variables: {
          ...{ ...variables, PIP_USER: '0' },
          ...(extraCaBundle !== null && { PIP_CERT: extraCaBundle }),
        },
      });
    } catch (error) {
      signal.throwIfAborted();
      const why = `${argv[0]} cannot be started: ${messageOf(error)}`;
      throw notInstalled(program, { why, remedy: libraryRemedy });
    }
  };
  await copyPython(python, dir);
  const { lock } = program.python;
  const pip = await run(
    ...([python.command, '-m', 'pip', 'install', '--quiet', '--no-input', '--no-compile'] as const),
    ...['--disable-pip-version-check', '--only-binary', ':all:', '--target', packagesFolder],
    ...(lock === null ? program.packages : ['--no-deps', ...lock]),
  );
  if (pip.exitCode !== 0)
    throw notInstalled(program, {
      why: `pip of ${python.command} ended with ${String(pip.exitCode)}`,
      remedy: registryRemedy,
      said: pip.stderr,
    });
  const { stdout } = await run('ldd', ...(await linkedFiles(dir)));
  const isLinked = await copyLibraries(stdout, dir);
  const trial = isLinked
    ? await run(path.join(dir, 'bin/python3'), '-S', '-c', 'import json, hashlib, socket, ssl')
    : null;
  if (trial?.exitCode !== 0)
    throw notInstalled(program, {
      why: `the Python of this machine (${python.executable}) does not run from a copy`,
      remedy: libraryRemedy,
      said: trial?.stderr ?? '',
    });
  // A sandbox cannot write into the folder: what is not compiled now is compiled by every trial. Some files are not meant to be.
  await run(
    ...([python.command, '-I', '-S', '-m', 'compileall', '-q', '-j', '0'] as const),
    ...['-s', dir, '-p', programAt(program.name), dir],
  );
}
