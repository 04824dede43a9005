import type { Writable } from 'node:stream';
import { RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { InteractiveProcess } from '../environment.ts';

/** What a shell reports for a process that was SIGKILLed, by whomever. */
const killedExitCode = 137;

/** For a program to begin: its shell is the image's, and may do anything. */
const defaultStartMs = 30_000;

/** Fires with `signal`, and with EXEC_FAILED when a program takes too long to begin. */
export function startLimit(signal: AbortSignal, startMs = defaultStartMs): LinkedAbort {
  const reason = (): RolloutError =>
    new RolloutError('EXEC_FAILED', `the program did not begin within ${startMs / 1000} s`, {
      phase: 'environment',
      retryable: false,
      remedy:
        'Check that the image has a shell that works, and that the machine is not overloaded.',
    });
  return new LinkedAbort([signal], { ms: startMs, reason });
}

export interface AttachedProcessParts {
  readonly stdin: Writable;
  /** Resolves with the exit code when the process has ended and its output has been delivered; null = it is not known. Never rejects. */
  readonly ended: Promise<number | null>;
  /** SIGKILLs the process with its descendants and lets go of its streams, so that `ended` resolves. Idempotent. */
  readonly kill: () => Promise<void>;
}

/** A running program of a sandbox whose standard input stays open; the same for every adapter. */
export class AttachedProcess implements InteractiveProcess {
  readonly exited: Promise<number | null>;
  readonly #parts: AttachedProcessParts;
  readonly #isOver = Promise.withResolvers<'ended'>();
  #hasEnded = false;
  #killing: Promise<void> | null = null;

  /** `signal` kills the program. */
  constructor(parts: AttachedProcessParts, signal: AbortSignal) {
    this.#parts = parts;
    parts.stdin.on('error', () => undefined); // a write tells it, and the end of the program does
    const onAbort = (): void => void this.kill();
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    this.exited = parts.ended.then((code) => {
      this.#hasEnded = true;
      this.#isOver.resolve('ended');
      signal.removeEventListener('abort', onAbort);
      parts.stdin.destroy();
      return this.#killing !== null || code === killedExitCode ? null : code;
    });
  }

  async write(bytes: string | Uint8Array): Promise<void> {
    if (this.#hasEnded || this.#killing !== null) throw ended();
    if (this.#parts.stdin.writableEnded) throw inputEnded();
    const taken = Promise.withResolvers<'taken'>();
    this.#parts.stdin.write(bytes, (error) => {
      if (error) taken.reject(ended(error));
      else taken.resolve('taken');
    });
    taken.promise.catch(() => undefined); // the end of the program may be told first
    if ((await Promise.race([taken.promise, this.#isOver.promise])) === 'ended') throw ended();
  }

  endInput(): void {
    this.#parts.stdin.end();
  }

  kill(): Promise<void> {
    if (this.#hasEnded) return Promise.resolve();
    this.#killing ??= (async () => {
      await this.#parts.kill();
      await this.exited;
    })();
    return this.#killing;
  }
}

function ended(cause?: unknown): RolloutError {
  return new RolloutError('ENVIRONMENT_LOST', 'the program in the sandbox has ended', {
    phase: 'environment',
    cause,
    remedy: 'Start it again; when that fails too, the sandbox is gone.',
  });
}

function inputEnded(): RolloutError {
  return new RolloutError('INTERNAL', 'the input of the program was ended before', {
    phase: 'environment',
  });
}
