/** Finds a Python of this machine that can be copied: of a version that the program runs on, with pip, on the GNU C library. */
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { pythonVariable } from '../../shared/python-variable.ts';
import type { AgentProgram, PythonNeeds } from '../../agent.ts';
import { notInstalled } from '../install-error.ts';
import type { InstallerParts } from '../program-runner.ts';

const factsSchema = z.object({
  version: z.string(),
  executable: z.string(),
  /** Its library, and the name of the folder in which that is looked for. */
  stdlib: z.string(),
  libFolder: z.string(),
});

export type HostPython = z.output<typeof factsSchema> & {
  /** As it is called. */
  readonly command: string;
};

/** Without pip it fails. The file behind it is asked of the system: what is in PATH may be a script or a link that starts another one. */
const question = `
import json, os, sys, sysconfig
import pip
print(json.dumps({
    "version": "%d.%d" % sys.version_info[:2],
    "executable": os.path.realpath("/proc/self/exe"),
    "stdlib": sysconfig.get_path("stdlib"),
    "libFolder": sys.platlibdir,
}))
`;

export async function findPython(
  program: AgentProgram & { readonly python: PythonNeeds },
  parts: InstallerParts,
  signal: AbortSignal,
): Promise<HostPython> {
  const { versions } = program.python;
  for (const command of await candidates(versions, parts.variables)) {
    const facts = await ask(command, parts, signal);
    if (facts !== null && versions.includes(facts.version)) return { ...facts, command };
  }
  throw notInstalled(program, {
    why: `no Python ${versions.join(' or ')} with pip is found on this machine`,
    remedy: `Install one, or name it in ${pythonVariable}; it is needed for the first run only, and not in the image.`,
  });
}

/** The one that the user names, those in PATH, and those of pyenv and uv, which need not be in it. */
async function candidates(
  versions: readonly string[],
  variables: InstallerParts['variables'],
): Promise<readonly string[]> {
  const named = variables[pythonVariable] ?? '';
  const home = variables['HOME'] ?? '';
  const data = variables['XDG_DATA_HOME'] ?? path.join(home, '.local/share');
  const roots = [
    path.join(variables['PYENV_ROOT'] ?? path.join(home, '.pyenv'), 'versions'),
    variables['UV_PYTHON_INSTALL_DIR'] ?? path.join(data, 'uv/python'),
  ];
  const installed = await Promise.all(
    roots.map(async (root) => {
      const names = await readdir(root).catch(() => []);
      return names.sort().map((name) => path.join(root, name, 'bin/python3'));
    }),
  );
  return [
    ...(named === '' ? [] : [named]),
    ...versions.map((version) => `python${version}`),
    'python3',
    ...installed.flat(),
  ];
}

/** null = it is not there, or not fit. */
async function ask(
  command: string,
  { run, variables }: InstallerParts,
  signal: AbortSignal,
): Promise<z.output<typeof factsSchema> | null> {
  try {
    const { exitCode, stdout } = await run([command, '-c', question], {
      ...{ cwd: '/', variables, signal },
    });
    if (exitCode !== 0) return null;
    return factsSchema.parse(JSON.parse(stdout));
  } catch {
    signal.throwIfAborted();
    return null;
  }
}
