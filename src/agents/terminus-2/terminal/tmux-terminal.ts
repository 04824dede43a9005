import { isRolloutError, RolloutError } from '../../../core/errors.ts';
import type { Clock } from '../../../core/clock.ts';
import type { AgentEnvironment } from '../../agent.ts';
import { limitOutput } from '../observation/limit-output.ts';
import { newOutput } from '../observation/new-output.ts';
import type { Recording } from './recording.ts';
import type { Terminal } from './terminal.ts';
import { paneTarget, sessionTarget, tmuxProgram, tmuxVariables } from './tmux-commands.ts';
import type { TmuxSession } from './tmux-session.ts';
import { typingOf } from './type-keys.ts';

const pasteMs = 120_000;
const buffer = 'slipway';

export interface TmuxTerminalParts {
  readonly environment: Pick<AgentEnvironment, 'exec'>;
  readonly session: TmuxSession;
  readonly recording: Recording | null;
  readonly clock: Clock;
}

export class TmuxTerminal implements Terminal {
  readonly #parts: TmuxTerminalParts;
  /** The history at the last read; null before the first. */
  #previous: string | null = null;
  #closing: Promise<void> | null = null;

  constructor(parts: TmuxTerminalParts) {
    this.#parts = parts;
  }

  get transport(): 'control-mode' | 'exec' {
    return this.#parts.session.transport;
  }

  async isAlive(signal: AbortSignal): Promise<boolean> {
    try {
      const reply = await this.#parts.session.run(['has-session', '-t', sessionTarget], signal);
      return !reply.isError;
    } catch (error) {
      signal.throwIfAborted();
      if (isRolloutError(error)) return false;
      throw error;
    }
  }

  async send(
    keys: string,
    { durationSec }: { readonly durationSec: number },
    signal: AbortSignal,
  ): Promise<void> {
    signal.throwIfAborted();
    const { clock, session } = this.#parts;
    const startMs = clock.monotonicMs();
    await session.look(signal);
    const isTyped = await this.#type(keys, signal);
    const leftMs = startMs + durationSec * 1000 - clock.monotonicMs();
    if (isTyped && leftMs > 0) await clock.sleep(leftMs, signal);
  }

  async readOutput(signal: AbortSignal): Promise<string> {
    await this.#parts.session.look(signal);
    const previous = this.#previous;
    const history = await this.#capture(['-S', '-'], signal);
    this.#previous = history;
    const fresh = newOutput(previous, history);
    const text =
      fresh === null
        ? `Current Terminal Screen:\n${await this.screen(signal)}`
        : `New Terminal Output:\n${fresh}`;
    return limitOutput(text);
  }

  async screen(signal: AbortSignal): Promise<string> {
    const text = await this.#capture([], signal);
    if (this.transport === 'exec') this.#parts.recording?.frame(text);
    return text;
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      const { session, recording } = this.#parts;
      await Promise.all([session.close(), recording?.close()]);
    })();
    return this.#closing;
  }

  /** False when the session is gone: there is nothing to type into, and nothing to wait for. */
  async #type(keys: string, signal: AbortSignal): Promise<boolean> {
    const typing = typingOf(keys);
    if (typing.kind === 'nothing') return true;
    const reply =
      typing.kind === 'keys'
        ? await this.#parts.session.runOnce(typing.command, signal)
        : await this.#paste(typing.text, signal);
    if (!reply.isError) return true;
    if (!(await this.isAlive(signal))) return false;
    throw new RolloutError('AGENT_FAILED', `tmux does not take keys: ${reply.text.trim()}`, {
      phase: 'agent',
    });
  }

  async #paste(text: string, signal: AbortSignal): Promise<{ isError: boolean; text: string }> {
    const command = `${tmuxProgram} load-buffer -b ${buffer} - && ${tmuxProgram} paste-buffer -d -b ${buffer} -t ${paneTarget}`;
    const result = await this.#parts.environment.exec(
      { command, stdin: Buffer.from(text), env: tmuxVariables, timeoutMs: pasteMs },
      signal,
    );
    return { isError: result.exitCode !== 0, text: result.stderr };
  }

  /** Nothing when the session is gone. */
  async #capture(range: readonly string[], signal: AbortSignal): Promise<string> {
    const command = ['capture-pane', '-p', ...range, '-t', paneTarget];
    const reply = await this.#parts.session.run(command, signal);
    if (!reply.isError) return reply.text;
    if (!(await this.isAlive(signal))) return '';
    throw new RolloutError('AGENT_FAILED', `tmux shows no screen: ${reply.text.trim()}`, {
      phase: 'agent',
    });
  }
}
