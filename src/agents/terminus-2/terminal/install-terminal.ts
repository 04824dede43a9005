import { isRolloutError, RolloutError } from '../../../core/errors.ts';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import type { Logger } from '../../../core/logger.ts';
import type { AgentEnvironment } from '../../agent.ts';

const commandMs = 120_000;
const totalMs = 240_000;
const lookMs = 60_000;

/** By program, in order: the first that is in the image is asked. */
const installers: readonly (readonly [string, string])[] = [
  [
    'apt-get',
    'export DEBIAN_FRONTEND=noninteractive; apt-get update && apt-get install -y --no-install-recommends tmux',
  ],
  ['dnf', 'dnf install -y tmux'],
  ['yum', 'yum install -y tmux'],
  ['apk', 'apk add --no-cache tmux'],
  ['pacman', 'pacman -Sy --noconfirm tmux'],
  ['brew', 'brew install tmux'],
  ['pkg', 'pkg install -y tmux'],
  ['zypper', 'zypper --non-interactive install tmux'],
];

type Sandbox = Pick<AgentEnvironment, 'exec'>;

/** Makes sure that the sandbox has tmux; installs it as root where it is missing. AGENT_SETUP_FAILED when it cannot be had. */
export async function installTerminal(
  environment: Sandbox,
  { signal, logger }: { readonly signal: AbortSignal; readonly logger: Logger },
): Promise<void> {
  if (await hasTmux(environment, signal)) return;
  const said = await install(environment, { signal, logger });
  if (await hasTmux(environment, signal)) return;
  throw new RolloutError(
    'AGENT_SETUP_FAILED',
    'the sandbox has no tmux, and none could be installed',
    {
      phase: 'agent-setup',
      detail: said.slice(-4000),
      remedy: 'Put tmux into the image of the task, or let the sandbox reach its package mirror.',
    },
  );
}

async function hasTmux(environment: Sandbox, signal: AbortSignal): Promise<boolean> {
  const result = await environment.exec({ command: 'tmux -V', timeoutMs: lookMs }, signal);
  return result.exitCode === 0;
}

/** What the package manager said. A limit that passes is only a warning: what it left may be enough. */
async function install(
  environment: Sandbox,
  { signal, logger }: { readonly signal: AbortSignal; readonly logger: Logger },
): Promise<string> {
  using limit = new LinkedAbort([signal], { ms: totalMs, reason: () => tooLong(totalMs) });
  try {
    const found = await environment.exec(
      { command: findScript(), user: 'root', timeoutMs: commandMs },
      limit.signal,
    );
    const name = found.stdout.trim();
    const command = installers.find(([program]) => program === name)?.[1];
    if (command === undefined) return 'the image has no package manager that is known here';
    logger.log('info', 'tmux is installed into the sandbox', { by: name });
    const result = await environment.exec(
      { command, user: 'root', timeoutMs: commandMs },
      limit.signal,
    );
    return result.stdout + result.stderr;
  } catch (error) {
    signal.throwIfAborted();
    if (!isRolloutError(error, 'EXEC_TIMEOUT')) throw error;
    logger.log('warn', 'installing tmux took too long', { cause: error.message });
    return error.message;
  }
}

function findScript(): string {
  const names = installers.map(([program]) => program).join(' ');
  return `for name in ${names}; do if command -v "$name" >/dev/null 2>&1; then echo "$name"; break; fi; done`;
}

function tooLong(ms: number): RolloutError {
  return new RolloutError('EXEC_TIMEOUT', `installing took longer than ${ms} ms`, {
    phase: 'agent-setup',
  });
}
