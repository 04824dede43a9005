import { shellQuote } from '../../../environments/shared/shell-quote.ts';
import type { AgentEnvironment } from '../../agent.ts';
import {
  maxReplyBytes,
  tmuxProgram,
  tmuxVariables,
  type TmuxCommand,
  type TmuxReply,
} from './tmux-commands.ts';

const commandMs = 60_000;

const pipeFail = '(set -o pipefail) 2>/dev/null && set -o pipefail';

/** One command as a process of its own in the sandbox: slower, and it always works. */
export async function runByExec(
  environment: Pick<AgentEnvironment, 'exec'>,
  command: TmuxCommand,
  signal: AbortSignal,
): Promise<TmuxReply> {
  const words = `${tmuxProgram} ${command.map((word) => shellQuote(asWord(word))).join(' ')}`;
  const isCapture = command[0] === 'capture-pane'; // an exec keeps the beginning of its output
  const result = await environment.exec(
    {
      command: isCapture ? `${pipeFail}; ${words} | tail -c ${maxReplyBytes}` : words,
      env: tmuxVariables,
      timeoutMs: commandMs,
    },
    signal,
  );
  const isSilent = result.stdout === '' && result.stderr !== ''; // a shell may not know pipefail
  const isError = result.exitCode !== 0 || (isCapture && isSilent);
  return { isError, text: isError ? result.stderr + result.stdout : result.stdout };
}

/** A `;` at the end of an argument is where tmux takes the next command to begin. */
function asWord(text: string): string {
  return text.replace(/;$/, '\\;');
}
