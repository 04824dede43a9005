import { randomUUID } from 'node:crypto';
import { isStatus } from '../api/api-error.ts';
import type { Toolbox } from './toolbox.ts';

export interface IdleSession {
  readonly id: string;
  /** Pid of its shell, as seen inside. */
  readonly shell: number;
}

/** Sessions of one sandbox: a session is a shell that runs one command after another, so one that is idle is used again. */
export class SessionPool {
  readonly #toolbox: Toolbox;
  readonly #idle: IdleSession[] = [];

  constructor(toolbox: Toolbox) {
    this.#toolbox = toolbox;
  }

  /** Starts a command in a session that is idle, or in a new one. Rejects with `ApiError`. */
  async start(
    command: string,
    signal: AbortSignal,
  ): Promise<{ readonly sessionId: string; readonly commandId: string }> {
    for (let idle = this.#idle.pop()?.id; idle !== undefined; idle = this.#idle.pop()?.id)
      try {
        return {
          sessionId: idle,
          commandId: await this.#toolbox.startCommand(idle, command, signal),
        };
      } catch (error) {
        if (!isStatus(error, 400, 404, 409, 410)) throw error; // its shell has ended, or was killed with the agent's
      }
    const sessionId = `slipway-${randomUUID()}`;
    await this.#toolbox.createSession(sessionId, signal);
    return { sessionId, commandId: await this.#toolbox.startCommand(sessionId, command, signal) };
  }

  /** The session's command has ended, all of it. */
  giveBack(session: IdleSession): void {
    this.#idle.push(session);
  }

  /** Pids, as seen inside, of the shells that are idle. */
  get shells(): readonly number[] {
    return this.#idle.map(({ shell }) => shell);
  }
}
