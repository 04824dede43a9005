import { randomBytes } from 'node:crypto';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import { RolloutError } from '../../../core/errors.ts';
import { attachExec, type AttachedExec } from '../attached-exec.ts';
import { plainShellArgv } from '../command-wrapper.ts';
import type { ExecTarget } from '../container-exec.ts';
import { engineFailure } from '../engine/engine-error.ts';

const scriptLimitMs = 10_000;

/** A root `sh` in a container that runs scripts itself, without a process of their own. One script at a time. */
export class RootShell {
  readonly #exec: AttachedExec;
  readonly #output: { onText: (text: string) => void };

  private constructor(exec: AttachedExec, output: { onText: (text: string) => void }) {
    this.#exec = exec;
    this.#output = output;
  }

  static async open(target: ExecTarget, signal: AbortSignal): Promise<RootShell> {
    const output: { onText: (text: string) => void } = { onText: () => undefined };
    try {
      const exec = await attachExec(
        target,
        {
          argv: plainShellArgv,
          user: 0,
          cwd: '/',
          env: {},
          wantsStdin: true,
          onOutput: (stream, bytes) => {
            if (stream === 'stdout') output.onText(bytes.toString('latin1'));
          },
        },
        signal,
      );
      return new RootShell(exec, output);
    } catch (error) {
      signal.throwIfAborted();
      throw engineFailure(error, {
        code: 'EXEC_FAILED',
        phase: 'agent-stop',
        what: 'opening a root shell',
        isRunning: true,
      });
    }
  }

  /** The lines that a script prints. EXEC_FAILED when the shell has ended or does not come back. */
  async run(script: string, signal: AbortSignal): Promise<readonly string[]> {
    using limit = new LinkedAbort([signal], { ms: scriptLimitMs, reason: ended });
    const marker = randomBytes(16).toString('hex');
    const done = Promise.withResolvers<string>();
    const onAbort = (): void => done.reject(limit.signal.reason as Error);
    limit.signal.addEventListener('abort', onAbort, { once: true });
    if (limit.signal.aborted) onAbort();
    void this.#exec.ended.then(() => done.reject(ended()));
    done.promise.catch(() => undefined); // awaited below; it may fail before
    let seen = '';
    this.#output.onText = (text) => {
      seen += text;
      const at = seen.indexOf(marker);
      if (at !== -1) done.resolve(seen.slice(0, at));
    };
    this.#exec.socket.write(`${script}\necho ${marker}\n`);
    const printed = await done.promise.finally(() => {
      limit.signal.removeEventListener('abort', onAbort);
    });
    return printed.split('\n').filter((line) => line !== '');
  }

  /** Ends the shell: it reads the end of its input. Idempotent. */
  close(): void {
    this.#exec.socket.destroy();
  }
}

function ended(): RolloutError {
  return new RolloutError('EXEC_FAILED', 'a root shell in the sandbox does not answer', {
    phase: 'agent-stop',
  });
}
