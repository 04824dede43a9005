import type { Writable } from 'node:stream';
import { raceSignal } from '../../../core/race-signal.ts';
import { PidLine } from '../pid-line.ts';
import type { Attach, AttachedProgram, ProgramEnd } from './attached-program.ts';
import { commandScript, insideArgv, scriptLine, type InsideCommand } from './inside-script.ts';

/** A command in the sandbox that has said its pid, or is about to. */
export interface RunningProgram {
  readonly stdin: Writable;
  /** As seen inside; null when the command never came to begin. Never rejects. */
  readonly pid: Promise<number | null>;
  /** Resolves behind all output. Never rejects. */
  readonly ended: Promise<ProgramEnd>;
  readonly pause: () => void;
  readonly resume: () => void;
  readonly detach: () => void;
}

/** Rejects with what `attach` rejects with. */
export async function runInside(
  attach: Attach,
  wanted: InsideCommand,
  options: {
    readonly onOutput: (stream: 'stdout' | 'stderr', bytes: Buffer) => void;
    readonly signal: AbortSignal;
  },
): Promise<RunningProgram> {
  const line = scriptLine(commandScript(wanted));
  const pid = Promise.withResolvers<number | null>();
  const pidLine = new PidLine((value) => pid.resolve(value));
  const program: AttachedProgram = await attach(
    {
      argv: insideArgv,
      onOutput: (stream, bytes) =>
        options.onOutput(stream, stream === 'stderr' ? pidLine.strip(bytes) : bytes),
    },
    options.signal,
  );
  program.stdin.on('error', () => undefined); // the end of the program tells it
  program.stdin.write(line);
  const ended = program.ended.then((end) => {
    options.onOutput('stderr', pidLine.rest());
    pid.resolve(null);
    return end;
  });
  return {
    stdin: program.stdin,
    pid: pid.promise,
    ended,
    pause: () => program.pause(),
    resume: () => program.resume(),
    detach: () => program.detach(),
  };
}

/** The pid of a command that has begun; null when it never does. Lets go of it when `signal` fires. */
export async function begun(program: RunningProgram, signal: AbortSignal): Promise<number | null> {
  try {
    return await raceSignal(program.pid, signal);
  } catch (error) {
    program.detach();
    throw error;
  }
}
