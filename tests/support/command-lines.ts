/** Command lines of Slipway, one after the other in one child process: the start of a process takes longer than most of them. */
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

export interface CommandLine {
  readonly argv: readonly string[];
  readonly cwd: string;
  readonly variables: Readonly<Record<string, string>>;
}

export interface EndedCommandLine {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
  /** What would have kept a process of its own from ending. */
  readonly held: readonly string[];
}

export class CommandLines implements AsyncDisposable {
  readonly #child: ChildProcess = fork(path.join(import.meta.dirname, 'command-lines-process.ts'));

  /** Its process must be idle. Rejects when the process ends. */
  async run(commandLine: CommandLine): Promise<EndedCommandLine> {
    const over = new AbortController();
    const { signal } = over;
    try {
      const ended = Promise.race([
        once(this.#child, 'message', { signal }),
        once(this.#child, 'exit', { signal }).then(([code]) => {
          throw new Error(`the process ended with ${String(code)}`);
        }),
      ]);
      this.#child.send(commandLine);
      const [message] = (await ended) as [EndedCommandLine];
      return message;
    } finally {
      over.abort();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }
}
