import { messageOf } from '../../core/errors.ts';
import type { AgentProgram } from '../agent.ts';
import { notInstalled } from './install-error.ts';
import type { InstallerParts } from './program-runner.ts';

const remedy =
  'Have npm in PATH and its registry within reach for the first run; later runs need neither.';

/** Into `dir`, where `node_modules` is then. Nothing of a package is executed: no install scripts run. */
export async function installFromNpm(
  program: AgentProgram,
  { run, variables, extraCaBundle }: InstallerParts,
  { dir, signal }: { readonly dir: string; readonly signal: AbortSignal },
): Promise<void> {
  const flags = ['--ignore-scripts', '--no-audit', '--no-fund', '--no-save', '--loglevel=error'];
  const argv = ['npm', 'install', ...flags, '--prefix', dir, ...program.packages] as const;
  const ended = await run(argv, {
    cwd: dir,
    variables: {
      ...variables,
      ...(extraCaBundle !== null && { npm_config_cafile: extraCaBundle }),
    },
    signal,
  }).catch((error: unknown) => {
    signal.throwIfAborted();
    throw notInstalled(program, { why: `npm cannot be started: ${messageOf(error)}`, remedy });
  });
  if (ended.exitCode !== 0)
    throw notInstalled(program, {
      why: `npm ended with ${String(ended.exitCode)}`,
      remedy,
      said: ended.stderr,
    });
}
