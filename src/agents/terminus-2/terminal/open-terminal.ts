/**
 * Makes the session and everything that the loop needs to drive it. The session is made by one exec and belongs to no client, so that it
 * outlives whatever happens to ours.
 */
import { RolloutError } from '../../../core/errors.ts';
import type { Clock } from '../../../core/clock.ts';
import type { Logger } from '../../../core/logger.ts';
import { shellQuote } from '../../../environments/shared/shell-quote.ts';
import { agentLogsDir, deadlineVariable, type AgentEnvironment } from '../../agent.ts';
import { Recording } from './recording.ts';
import type { Terminal } from './terminal.ts';
import {
  paneTarget,
  sessionName,
  sessionTarget,
  tmuxProgram,
  tmuxVariables,
} from './tmux-commands.ts';
import { TmuxSession } from './tmux-session.ts';
import { TmuxTerminal } from './tmux-terminal.ts';
import { hasControlMode } from './tmux-version.ts';

export interface TerminalOptions {
  readonly environment: AgentEnvironment;
  readonly width: number;
  readonly height: number;
  /** More variables of the session's shell. */
  readonly env: Readonly<Record<string, string>>;
  /** Host file of the recording; null = none. */
  readonly recordingFile: string | null;
  /** Known secret values, for the recording. */
  readonly secrets: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
  /** `exec` gives control mode up from the start. */
  readonly transport?: 'control-mode' | 'exec';
}

/** Set before the pane is made, since a pane keeps the limit that it was made with. */
const historyLines = 50_000;

/** The pane's log in the sandbox ends here, whatever floods the terminal. */
const paneLogBytes = 64 * 1024 * 1024;
const paneLog = `${agentLogsDir}/terminus_2.pane`;

const openMs = 60_000;
const variableName = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Opens the session. AGENT_SETUP_FAILED when tmux does not make one. */
export async function openTerminal(
  options: TerminalOptions,
  signal: AbortSignal,
): Promise<Terminal> {
  const { environment, width, height, recordingFile, secrets, clock, logger } = options;
  const made = await environment.exec(
    {
      command: openScript(options),
      env: { ...options.env, ...tmuxVariables },
      timeoutMs: openMs,
    },
    signal,
  );
  if (made.exitCode !== 0) throw notMade(made.stderr + made.stdout);
  const recording =
    recordingFile === null
      ? null
      : new Recording({ file: recordingFile, width, height, secrets, clock, logger });
  const session = new TmuxSession({ environment, width, height, recording, logger });
  const terminal = new TmuxTerminal({ environment, session, recording, clock });
  try {
    if (options.transport !== 'exec' && hasControlMode(made.stdout)) await session.connect(signal);
    else logger.log('debug', 'tmux is driven by exec', { version: made.stdout.trim() });
  } catch (error) {
    await terminal.close();
    throw error;
  }
  return terminal;
}

/**
 * Prints tmux's version. The variables are those of the command itself: a server that starts here hands all of them on, one that runs already
 * takes those that are named.
 */
function openScript({ env, width, height }: TerminalOptions): string {
  const own = Object.keys(env).filter((name) => variableName.test(name));
  const names = [...own, deadlineVariable, 'LANG', 'SHELL'];
  const make = [
    'start-server',
    `set-option -g history-limit ${historyLines}`,
    `set-option -g update-environment ${shellQuote(names.join(' '))}`,
    `new-session -d -x ${width} -y ${height} -s ${sessionName} "$shell"`,
  ].join(' \\; ');
  const log = `{ head -c ${paneLogBytes}; cat >/dev/null; } >${paneLog}`;
  return [
    // Without a locale a shell shows typed characters beyond ASCII as escapes.
    'if [ -z "$LC_ALL$LC_CTYPE$LANG" ]; then LANG=C.UTF-8; export LANG; fi',
    'SHELL=/bin/sh; shell="sh -l"',
    'if command -v bash >/dev/null 2>&1; then SHELL=$(command -v bash); shell="bash --login"; fi',
    'if [ -x /bin/bash ]; then SHELL=/bin/bash; fi; export SHELL',
    `mkdir -p ${agentLogsDir} 2>/dev/null`,
    `${tmuxProgram} kill-session -t ${sessionTarget} 2>/dev/null`,
    // A server whose last session was just ended may take the command and go.
    `tries=0; until ${tmuxProgram} ${make}; do tries=$((tries + 1)); [ $tries -lt 5 ] || exit 1; sleep 0.2; done`,
    `${tmuxProgram} pipe-pane -t ${paneTarget} ${shellQuote(log)} 2>/dev/null`,
    'tmux -V',
  ].join('\n');
}

function notMade(said: string): RolloutError {
  const detail = said.trim().slice(-2000);
  return new RolloutError(
    'AGENT_SETUP_FAILED',
    `tmux makes no session: ${detail.split('\n').at(-1) ?? ''}`,
    {
      phase: 'agent-setup',
      detail,
      remedy: 'Check in the image that "tmux new-session -d" works for the user of the agent.',
    },
  );
}
