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
  readonly #listener = (name: NodeJS.Signals): void => this.#interrupt(name);

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
    for (const name of signals) process.on(name, this.#listener);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  #interrupt(name: NodeJS.Signals): void {
    if (this.#controller.signal.aborted) {
      this.#terminal.err('\nending at once; the next run removes what is left\n');
      process.exit(exitCodes.interrupted);
    }
    this.#terminal.err('\ncancelling; once more to end at once\n');
    this.#controller.abort(
      new RolloutError('CANCELLED', `cancelled by ${name}`, { phase: 'queue' }),
    );
  }

  [Symbol.dispose](): void {
    for (const name of signals) process.off(name, this.#listener);
  }
}
