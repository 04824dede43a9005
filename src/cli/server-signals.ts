/**
 * The signals of a server: the first SIGINT or SIGTERM asks for an end in stages, the second one ends what still runs, the third one ends the process.
 * SIGHUP asks to read keys again and to open the log files anew.
 */
import { RolloutError, messageOf } from '../core/errors.ts';
import { exitCodes } from './exit-codes.ts';
import type { Terminal } from './terminal.ts';

const endings = ['SIGINT', 'SIGTERM'] as const;

export class ServerSignals implements Disposable {
  readonly #terminal: Terminal;
  readonly #stop = new AbortController();
  readonly #hurry = new AbortController();
  readonly #stopped = Promise.withResolvers<null>();
  #reload: (() => Promise<void>) | null = null;
  readonly #onEnding = (name: NodeJS.Signals): void => this.#end(name);
  readonly #onHangUp = (): void => void this.#hangUp();

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    for (const name of endings) process.on(name, this.#onEnding);
    process.on('SIGHUP', this.#onHangUp);
  }

  /** Fires at the first signal. */
  get stop(): AbortSignal {
    return this.#stop.signal;
  }

  /** Resolves at the first signal. */
  get stopped(): Promise<null> {
    return this.#stopped.promise;
  }

  /** Fires at the second: nothing more is waited for. */
  get hurry(): AbortSignal {
    return this.#hurry.signal;
  }

  onReload(reload: () => Promise<void>): void {
    this.#reload = reload;
  }

  #end(name: NodeJS.Signals): void {
    const reason = new RolloutError('CANCELLED', `stopped by ${name}`, { phase: 'server' });
    if (!this.#stop.signal.aborted) {
      this.#terminal.err('stopping: running rollouts may finish; once more to end them\n');
      this.#stop.abort(reason);
      this.#stopped.resolve(null);
    } else if (!this.#hurry.signal.aborted) {
      this.#terminal.err('ending what runs; once more to end at once\n');
      this.#hurry.abort(reason);
    } else process.exit(exitCodes.interrupted);
  }

  async #hangUp(): Promise<void> {
    try {
      await this.#reload?.();
    } catch (error) {
      this.#terminal.err(`nothing was reloaded: ${messageOf(error)}\n`);
    }
  }

  [Symbol.dispose](): void {
    for (const name of endings) process.off(name, this.#onEnding);
    process.off('SIGHUP', this.#onHangUp);
  }
}
