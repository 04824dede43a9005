import { randomUUID } from 'node:crypto';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import { raceSignal } from '../../../core/race-signal.ts';
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
  readonly #ending = new Set<Promise<void>>();

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

  /** The session's program has ended; `whether` it is idle is known a moment later. */
  giveBack(session: IdleSession, whether: Promise<boolean>): void {
    const ending = whether.then((isIdle) => {
      this.#ending.delete(ending);
      if (isIdle) this.#idle.push(session);
    });
    this.#ending.add(ending);
  }

  /** Waits until sessions whose programs have ended are idle, or for so long. */
  async settle(ms: number, signal: AbortSignal): Promise<void> {
    using limit = new LinkedAbort([signal], { ms, reason: () => 'long enough' });
    await raceSignal(Promise.all(this.#ending), limit.signal).catch(() => undefined); // what is not idle is killed with the rest
    signal.throwIfAborted();
  }

  /** Pids, as seen inside, of the shells that are idle. */
  get shells(): readonly number[] {
    return this.#idle.map(({ shell }) => shell);
  }
}
