/** Folders in the sandbox that the trial owns: made, emptied and taken back as root. */
import { agentLogsDir } from '../agents/agent.ts';
import { RolloutError } from '../core/errors.ts';
import type { Environment } from '../environments/environment.ts';
import { publishDir } from '../tasks/artifacts.ts';
import { sandboxVerifierDir } from '../verifier/run-tests.ts';
import { quote } from './shell-quote.ts';

/** Runs a command as root; a non-zero exit is EXEC_FAILED. */
export async function asRoot(
  environment: Environment,
  command: string,
  signal: AbortSignal,
): Promise<string> {
  const { exitCode, stdout, stderr } = await environment.exec(
    { command, user: 'root', cwd: '/' },
    signal,
  );
  if (exitCode === 0) return stdout;
  throw new RolloutError('EXEC_FAILED', `a command of the runner exited with ${exitCode}`, {
    phase: 'environment',
    remedy: 'Use an image in which root has a shell and the usual file commands.',
    detail: `${command}\n${stderr.trim()}`,
  });
}

/** `/logs/{agent,verifier,artifacts}`, writable for every user. */
export async function makeLogFolders(environment: Environment, signal: AbortSignal): Promise<void> {
  const dirs = [agentLogsDir, sandboxVerifierDir, publishDir('linux')].join(' ');
  await asRoot(environment, `mkdir -p ${dirs} && chmod 0777 ${dirs}`, signal);
}

export interface FolderToTake {
  readonly dir: string;
  /** As `chmod` reads it. */
  readonly mode: string;
  /** Parents that are not real folders are removed as well. */
  readonly parents?: boolean;
}

/**
 * Leaves each folder empty, real, owned by root, with its mode. A link or a file in its place is removed, and with `parents` also one in place of a
 * parent: nothing that was left there decides where the next writer writes. The shell checks the result itself.
 */
export async function takeBackFolders(
  environment: Environment,
  folders: readonly FolderToTake[],
  signal: AbortSignal,
): Promise<void> {
  const commands = folders.flatMap(({ dir, mode, parents = false }) => {
    const quoted = quote(dir);
    return [
      ...(parents ? parentsOf(dir) : []).map((parent) => realFolder(quote(parent))),
      realFolder(quoted),
      `mkdir -p ${quoted}`,
      `find ${quoted} -mindepth 1 -delete 2>/dev/null || rm -rf ${quoted}/* ${quoted}/.[!.]* ${quoted}/..?*`,
      `chown 0:0 ${quoted}`,
      `chmod ${mode} ${quoted}`,
      `[ -z "$(ls -A ${quoted})" ]`,
    ];
  });
  await asRoot(environment, ['set -e', ...commands].join('\n'), signal);
}

function realFolder(quoted: string): string {
  return `if [ -L ${quoted} ] || { [ -e ${quoted} ] && [ ! -d ${quoted} ]; }; then rm -rf ${quoted}; fi`;
}

/** `/logs/verifier` → `/logs`. */
function parentsOf(dir: string): readonly string[] {
  const parts = dir.split('/').filter((part) => part !== '');
  return parts.slice(0, -1).map((_, index) => `/${parts.slice(0, index + 1).join('/')}`);
}

/** The working folder of a user's commands: the task's, else the image's. */
export async function workingFolder(
  environment: Environment,
  { user }: { readonly user: string | number | null },
  signal: AbortSignal,
): Promise<string> {
  const { stdout } = await environment.exec({ command: 'pwd', user }, signal);
  return stdout.trim() || '/';
}
