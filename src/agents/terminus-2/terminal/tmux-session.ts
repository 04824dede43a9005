/**
 * The commands of one session, through control mode while it can be had: a client that is lost is opened once more, after that every command
 * is an exec of its own. Which way is taken changes no answer.
 */
import { isRolloutError, messageOf } from '../../../core/errors.ts';
import type { Logger } from '../../../core/logger.ts';
import type { AgentEnvironment } from '../../agent.ts';
import { ControlClient, ControlLost } from './control-client.ts';
import { runByExec } from './exec-client.ts';
import { OutputTap } from './output-tap.ts';
import type { Recording } from './recording.ts';
import type { TmuxCommand, TmuxReply } from './tmux-commands.ts';

const countOption = '@slipway-count';

export interface TmuxSessionOptions {
  readonly environment: Pick<AgentEnvironment, 'exec' | 'openProcess'>;
  readonly width: number;
  readonly height: number;
  readonly recording: Recording | null;
  readonly logger: Logger;
}

export class TmuxSession {
  readonly #options: TmuxSessionOptions;
  readonly #tap: OutputTap;
  #client: ControlClient | null = null;
  #canReopen = true;
  #count = 0;
  #isClosed = false;

  constructor(options: TmuxSessionOptions) {
    this.#options = options;
    this.#tap = new OutputTap(options.recording, `${options.width}x${options.height}`);
  }

  get transport(): 'control-mode' | 'exec' {
    return this.#client?.isOpen === true ? 'control-mode' : 'exec';
  }

  /** Opens a control client; where that fails, exec is the way. */
  async connect(signal: AbortSignal): Promise<void> {
    const { environment, width, height, logger } = this.#options;
    try {
      const client = await ControlClient.open(environment, this.#tap.hooks, signal);
      try {
        await client.run(['refresh-client', '-C', `${width}x${height}`], signal);
        await this.#tap.begin(client, signal);
      } catch (error) {
        await client.close();
        throw error;
      }
      this.#client = client;
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof ControlLost) && !isRolloutError(error)) throw error;
      logger.log('debug', 'tmux is driven by exec', { cause: messageOf(error) });
    }
  }

  /** Tells that somebody types or looks now. */
  async look(signal: AbortSignal): Promise<void> {
    await this.#over(signal, async (client) => {
      await this.#tap.look(client, signal);
    });
  }

  /** Runs one command that may be run again when a client is lost under it. */
  async run(command: TmuxCommand, signal: AbortSignal): Promise<TmuxReply> {
    for (;;) {
      const reply = await this.#over(signal, (client) => client.run(command, signal));
      if (reply === null) return await runByExec(this.#options.environment, command, signal);
      if (!(reply instanceof ControlLost)) return reply;
    }
  }

  /** Runs a command that must be run once. With it tmux keeps its number, which tells whether it ran when a client is lost under it. */
  async runOnce(command: TmuxCommand, signal: AbortSignal): Promise<TmuxReply> {
    this.#count += 1;
    const number = String(this.#count);
    const line = [command, ['set-option', '-s', countOption, number]];
    for (;;) {
      const reply = await this.#over(signal, (client) => client.runLine(line, signal));
      if (reply === null) return await runByExec(this.#options.environment, command, signal);
      if (!(reply instanceof ControlLost)) return reply;
      if (!reply.isSent) continue;
      const last = await this.run(['show-options', '-sv', countOption], signal);
      if (last.text.trim() === number) return { isError: false, text: '' };
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const client = this.#client;
    this.#client = null;
    await client?.close();
  }

  /** Work with the client that there is; answers the loss when it is lost meanwhile, and another has taken its place. */
  async #over<T>(
    signal: AbortSignal,
    work: (client: ControlClient) => Promise<T>,
  ): Promise<T | ControlLost | null> {
    const client = this.#client;
    if (client === null) return null;
    try {
      return await work(client);
    } catch (error) {
      if (!(error instanceof ControlLost)) throw error;
      await this.#replace(client, signal);
      return error;
    }
  }

  async #replace(lost: ControlClient, signal: AbortSignal): Promise<void> {
    if (this.#client !== lost) return;
    this.#client = null;
    if (!this.#canReopen || this.#isClosed) return;
    this.#canReopen = false;
    await this.connect(signal);
  }
}
