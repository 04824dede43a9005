import type { AppPorts } from '../app/ports.ts';
import type { Terminal } from './terminal.ts';

/** What every command gets. */
export interface CommandScope {
  readonly terminal: Terminal;
  /** The application's parts for this process; `variables` are added to those of the process, as `--env-file` does. */
  ports(variables?: Readonly<Record<string, string>>): Promise<AppPorts>;
  /** Fires at SIGINT and SIGTERM. */
  readonly signal: AbortSignal;
  /** Who tells the person about an interruption; null = the terminal itself. */
  announceInterruptsBy(announce: ((text: string) => void) | null): void;
  /** From now on signals are the command's own business: `signal` does not fire any more. */
  releaseInterrupts(): void;
}
