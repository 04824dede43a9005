import { randomUUID } from 'node:crypto';
import { closeSync, openSync, rmSync, writeSync } from 'node:fs';
import path from 'node:path';

/**
 * A file without a name that a program of the host reads at `/proc/self/fd/N` or from descriptor N: it holds variables of a sandbox, which belong neither
 * on a command line nor in a file that a crash leaves behind.
 */
export class ProcessDocument implements Disposable {
  readonly fd: number;

  constructor(dir: string, content: object | string) {
    const file = path.join(dir, `.document-${randomUUID()}`);
    this.fd = openSync(file, 'wx+', 0o600);
    rmSync(file);
    // At a position, which leaves that of the descriptor at the beginning, where the program reads.
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    writeSync(this.fd, text, 0);
  }

  [Symbol.dispose](): void {
    closeSync(this.fd);
  }
}
