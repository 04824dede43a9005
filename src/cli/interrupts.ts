/**
 * SIGINT and SIGTERM as a signal for cancelling: the first cancels everything and waits for the receipts; the second ends the process,
 * and the next start removes what was left.
 */
import { RolloutError } from '../core/errors.ts';
import { exitCodes } from './exit-codes.ts';
import type { Terminal } from './terminal.ts';

const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

export class Interrupts implements Disposable {
  readonly #controller = new AbortController();
  readonly #terminal: Terminal;
  #announce: ((text: string) => void) | null = null;
  readonly #listener = (name: NodeJS.Signals): void => this.#interrupt(name);

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    for (const name of signals) process.on(name, this.#listener);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** How a person is told, so that what is redrawn on the terminal does not wipe it out; null = written as it comes. */
  announceBy(announce: ((text: string) => void) | null): void {
    this.#announce = announce;
  }

  #say(text: string): void {
    if (this.#announce === null) this.#terminal.err(`\n${text}\n`);
    else this.#announce(text);
  }

  #interrupt(name: NodeJS.Signals): void {
    if (this.#controller.signal.aborted) {
      this.#say('ending at once; the next run removes what is left');
      process.exit(exitCodes.interrupted);
    }
    this.#say('cancelling; once more to end at once');
    this.#controller.abort(
      new RolloutError('CANCELLED', `cancelled by ${name}`, { phase: 'queue' }),
    );
  }

  [Symbol.dispose](): void {
    for (const name of signals) process.off(name, this.#listener);
  }
}
