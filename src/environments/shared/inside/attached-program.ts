/**
 * How an adapter starts a program in a sandbox that is somewhere else: by argv, with three streams and an exit code, and with nothing else (no user, no
 * variables, no working folder, no killing). What `inside/` builds on it is the rest of the environment port.
 */
import type { Writable } from 'node:stream';

export type ProgramEnd =
  | { readonly kind: 'exited'; readonly exitCode: number }
  /** The stream broke, or was let go of: nothing is known of the program. */
  | { readonly kind: 'lost'; readonly cause: unknown };

/** A program in the sandbox as this process is attached to it. */
export interface AttachedProgram {
  /** `end` closes the program's input where the stream can say so; where it cannot, it lets go of the program. */
  readonly stdin: Writable;
  /** Resolves behind all output. Never rejects. */
  readonly ended: Promise<ProgramEnd>;
  /** Output is held back until `resume`. */
  pause(): void;
  resume(): void;
  /** Lets go of the streams, so that `ended` resolves; the program may go on. Idempotent. */
  detach(): void;
}

export interface AttachRequest {
  readonly argv: readonly string[];
  /** Called with each piece of output as it comes; must not throw. The bytes are the callee's. */
  readonly onOutput: (stream: 'stdout' | 'stderr', bytes: Buffer) => void;
}

/** Rejects when the program cannot be started, or with the reason of `signal`, which ends only the wait for its start. */
export type Attach = (request: AttachRequest, signal: AbortSignal) => Promise<AttachedProgram>;
