/** Python packages for tests, from the machine's own pip into folders of the cache; nothing of the machine's Python changes. */
import { complaint, findProgram, run } from './programs.js';
import { SetupProblem } from './step.js';

const pythons = ['python3', 'python3.13', 'python3.12', 'python3.11', '/usr/bin/python3'];
const installMs = 120_000;

/**
 * The first interpreter since 3.11 that has pip.
 *
 * @param {string} purpose What it is wanted for.
 */
export async function findPython(purpose) {
  for (const name of pythons) {
    const program = name.startsWith('/') ? name : findProgram(name);
    if (!program) continue;
    const probe = 'import sys, pip; assert sys.version_info >= (3, 11); print(sys.executable)';
    const found = await run(program, ['-c', probe], { timeoutMs: 20_000 });
    if (found.code === 0) return found.stdout.trim();
  }
  throw new SetupProblem(
    `Install Python 3.11 or newer with pip (python3 and python3-pip) for ${purpose}.`,
  );
}

/**
 * Installs exactly what is named, nothing beneath it.
 *
 * @param {string} python
 * @param {string} target
 * @param {readonly string[]} wanted Requirements and options of pip.
 */
export async function installPackages(python, target, wanted) {
  const options = ['--no-deps', '--no-compile', '--only-binary', ':all:', '--target', target];
  const quiet = ['--quiet', '--disable-pip-version-check', '--no-input', '--upgrade'];
  const argv = ['-m', 'pip', 'install', ...quiet, ...options, ...wanted];
  const result = await run(python, argv, {
    timeoutMs: installMs,
    env: { PIP_ROOT_USER_ACTION: 'ignore' },
  });
  if (result.code !== 0) throw new SetupProblem(`pip failed:\n${complaint(result)}`);
}
