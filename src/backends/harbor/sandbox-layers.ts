/** What a sandbox sees of this machine: the runner, and the user's project as it was when the server started. */
import { createHash, randomUUID } from 'node:crypto';
import { chmod, copyFile, mkdir, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import path from 'node:path';
import { RolloutError } from '../../core/errors.ts';
import type { EnvironmentLayer } from '../../environments/environment.ts';
import { runnerPackageDir, runnerProgram } from '../../runner/interpreter.ts';

const layersRoot = '/opt/slipway';
const runnerAt = `${layersRoot}/runner`;
const codeAt = `${layersRoot}/code`;
/** Packages that the code needs and the image need not have. */
export const packagesAt = `${layersRoot}/packages`;

/** Flat and namespace layouts are found in the folder itself, others in `src`. */
const searchPath = ['runner', 'code', 'code/src', 'packages'];

export const runnerLayer: EnvironmentLayer = { hostDir: runnerPackageDir, at: runnerAt };

/** What nobody imports; names that begin with a dot too, among which files of keys are. */
const leftOut = new Set(['venv', 'node_modules', '__pycache__']);
const markOfVirtualEnvironment = 'pyvenv.cfg';
const maxProjectBytes = 256 * 1024 * 1024;

/** What the runner is asked to do there: `python` tells what packages have to fit, `imports` whether classes can be loaded. */
type SandboxPart = 'workflow' | 'grader' | 'python' | 'imports';

/** A command line of a POSIX shell, which it becomes. `root`: where the layers are, if not at their places. */
export function inSandboxCommand(
  python: string,
  part: SandboxPart,
  {
    root = layersRoot,
    input = null,
  }: { readonly root?: string; readonly input?: string | null } = {},
): string {
  const folders = searchPath.map((folder) => `${root}/${folder}`).join(':');
  const variables = `PYTHONPATH="${folders}\${PYTHONPATH:+:$PYTHONPATH}" PYTHONDONTWRITEBYTECODE=1`;
  const program = `${root}/runner/${runnerProgram}`;
  const more = input === null ? '' : ` ${quoted(input)}`;
  return `export ${variables}; exec ${quoted(python)} -u ${program} in-sandbox ${part}${more}`;
}

/** Prints the version of the interpreter; fails when it cannot run what it will be given. */
export function pythonProbe(python: string): string {
  // Distributions split the standard library: what the runner stands on may be missing.
  const script =
    'import sys; print("%d.%d" % sys.version_info[:2], flush=True); import asyncio, json';
  return `${quoted(python)} -c ${quoted(script)}`;
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

interface ProjectFile {
  readonly name: string;
  readonly isExecutable: boolean;
}

/**
 * Copies the project to `layers/` of the data folder under the hash of its content, and removes the copies of servers before this one. Nothing of the data
 * folder is copied, wherever it is. CONFIG_INVALID for what is no folder, holds links, or is too large.
 */
export async function projectLayer(codeDir: string, dataDir: string): Promise<EnvironmentLayer> {
  const layersDir = path.join(dataDir, 'layers');
  const files = await filesOf(codeDir, dataDir);
  const hash = createHash('sha256');
  for (const { name, isExecutable } of files) {
    const content = await readFile(path.join(codeDir, name));
    hash.update(`${name}\0${isExecutable ? 'x' : '-'}${content.length}\0`).update(content);
  }
  const name = `code-${hash.digest('hex').slice(0, 32)}`;
  for (const other of await readdir(layersDir).catch((): string[] => []))
    if (other !== name) await rm(path.join(layersDir, other), { recursive: true, force: true });
  const hostDir = path.join(layersDir, name);
  if ((await stat(hostDir).catch(() => null)) === null) await copyProject(codeDir, files, hostDir);
  return { hostDir, at: codeAt };
}

async function filesOf(codeDir: string, dataDir: string): Promise<readonly ProjectFile[]> {
  const files: ProjectFile[] = [];
  let sizeBytes = 0;
  const walk = async (folder: string): Promise<void> => {
    const entries = await readdir(path.join(codeDir, folder), { withFileTypes: true });
    if (folder !== '' && entries.some(({ name }) => name === markOfVirtualEnvironment)) return;
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const name = path.join(folder, entry.name);
      if (leftOut.has(entry.name) || entry.name.startsWith('.')) continue;
      if (path.join(codeDir, name) === dataDir) continue;
      if (entry.isDirectory()) await walk(name);
      else if (entry.isFile()) {
        const { size, mode } = await stat(path.join(codeDir, name));
        sizeBytes += size;
        if (sizeBytes > maxProjectBytes)
          throw unusable(`is larger than ${maxProjectBytes / 1024 / 1024} MiB`);
        files.push({ name, isExecutable: (mode & 0o100) !== 0 });
      } else throw unusable(`holds what is neither a file nor a folder: ${name}`);
    }
  };
  try {
    await walk('');
  } catch (error) {
    if (error instanceof RolloutError) throw error;
    throw unusable('cannot be read', error);
  }
  return files;
}

/** Readable for every user of a sandbox, and complete as soon as it has its name. */
async function copyProject(
  codeDir: string,
  files: readonly ProjectFile[],
  to: string,
): Promise<void> {
  const unfinished = `${to}.${randomUUID()}`;
  try {
    await mkdir(unfinished, { recursive: true });
    await chmod(unfinished, 0o755);
    for (const { name, isExecutable } of files) {
      const target = path.join(unfinished, name);
      await mkdir(path.dirname(target), { recursive: true });
      await openFolders(unfinished, path.dirname(name));
      await copyFile(path.join(codeDir, name), target);
      await chmod(target, isExecutable ? 0o755 : 0o644);
    }
    await rename(unfinished, to).catch(async (error: unknown) => {
      if ((await stat(to).catch(() => null)) === null) throw error; // else somebody was faster
    });
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

/** Whatever this process keeps new folders from. */
async function openFolders(root: string, folder: string): Promise<void> {
  for (let at = folder; at !== '.'; at = path.dirname(at)) await chmod(path.join(root, at), 0o755);
}

function unusable(why: string, cause?: unknown): RolloutError {
  return new RolloutError('CONFIG_INVALID', `the folder of code_dir ${why}`, {
    phase: 'config',
    field: 'backend.harbor.code_dir',
    remedy: 'Name the folder of your project, with copies in place of links.',
    cause,
  });
}
