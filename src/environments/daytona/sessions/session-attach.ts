/** Programs in a Daytona sandbox as `inside/` wants them: each is a command of a session. */
import { randomBytes } from 'node:crypto';
import { Writable } from 'node:stream';
import type { Clock } from '../../../core/clock.ts';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import { raceSignal } from '../../../core/race-signal.ts';
import type {
  Attach,
  AttachedProgram,
  AttachRequest,
  ProgramEnd,
} from '../../shared/inside/attached-program.ts';
import { isStatus } from '../api/api-error.ts';
import { LogDecoder } from './log-decoder.ts';
import { LogFollower, type FollowedCommand } from './log-follower.ts';
import type { SessionPool } from './session-pool.ts';
import { endOfInput, inputLines, sessionScript } from './session-script.ts';
import type { Toolbox } from './toolbox.ts';

/** How long a session may take from its program's end to being idle; after it, something in the background holds it. */
const idleWithinMs = 5_000;

export interface SessionParts {
  readonly toolbox: Toolbox;
  readonly pool: SessionPool;
  readonly clock: Clock;
  readonly silenceMs: number;
}

export function sessionAttach(parts: SessionParts): Attach {
  return async (request, signal) => {
    const mark = randomBytes(16).toString('hex');
    const command = await parts.pool.start(sessionScript(request.argv, mark), signal);
    return attached(parts, { command, mark, request });
  };
}

function attached(
  parts: SessionParts,
  started: {
    readonly command: FollowedCommand;
    readonly mark: string;
    readonly request: AttachRequest;
  },
): AttachedProgram {
  const { command, mark, request } = started;
  const end = Promise.withResolvers<ProgramEnd>();
  let isOver = false;
  const over = (how: ProgramEnd): void => {
    isOver = true;
    end.resolve(how);
  };
  const decoder = new LogDecoder(mark, {
    onBytes: (stream, bytes) => {
      if (!isOver) request.onOutput(stream, bytes);
    },
  });
  const follower = new LogFollower(parts.toolbox, command, {
    clock: parts.clock,
    silenceMs: parts.silenceMs,
    onBytes: (bytes) => {
      decoder.write(bytes);
      if (decoder.exitCode !== null) over({ kind: 'exited', exitCode: decoder.exitCode });
    },
  });
  const input = new SessionInput(parts.toolbox, command);
  follower.ended.then(
    () => over({ kind: 'lost', cause: 'the log ended before the program said its end' }),
    (cause: unknown) => over({ kind: 'lost', cause }),
  );
  void end.promise.then(async (how) => {
    const { shell } = decoder;
    if (how.kind === 'exited' && shell !== null) {
      const whether = becomesIdle(follower, input);
      parts.pool.giveBack({ id: command.sessionId, shell }, whether);
      await whether;
    }
    follower.stop('the program has ended');
    input.destroy();
  });
  return {
    stdin: input,
    ended: end.promise,
    pause: () => follower.pause(),
    resume: () => follower.resume(),
    detach: () => {
      follower.stop('let go of');
      input.destroy();
      over({ kind: 'lost', cause: 'let go of' });
    },
  };
}

/** Ends the input of a program that has ended, so that its session can go on. */
async function becomesIdle(follower: LogFollower, input: SessionInput): Promise<boolean> {
  using limit = new LinkedAbort([], { ms: idleWithinMs, reason: () => 'held' });
  follower.resume();
  try {
    await raceSignal(input.release(limit.signal), limit.signal);
    await raceSignal(follower.ended, limit.signal);
    return true;
  } catch {
    return false;
  }
}

/** The input of a session command. A write is taken when the daemon has it. */
class SessionInput extends Writable {
  readonly #toolbox: Toolbox;
  readonly #command: FollowedCommand;
  readonly #ending = new LinkedAbort([]);
  #hasEnded = false;

  constructor(toolbox: Toolbox, command: FollowedCommand) {
    super({ highWaterMark: 64 * 1024, decodeStrings: true });
    this.#toolbox = toolbox;
    this.#command = command;
    this.on('error', () => undefined); // the end of the program tells it
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    // What is written and ended in one turn goes in one request.
    setImmediate(() => {
      const isLast = this.writableEnded && this.writableLength === chunk.length;
      if (isLast) this.#hasEnded = true;
      this.#send(inputLines(chunk) + (isLast ? `${endOfInput}\n` : ''), done);
    });
  }

  override _final(done: (error?: Error | null) => void): void {
    if (this.#hasEnded) {
      done();
      return;
    }
    this.#hasEnded = true;
    this.#send(`${endOfInput}\n`, done);
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#ending.abort(new Error('the input is not wanted any more'));
    done(error);
  }

  async release(signal: AbortSignal): Promise<void> {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    await this.#toolbox
      .sendInput(this.#command.sessionId, this.#command.commandId, {
        data: `${endOfInput}\n`,
        signal,
      })
      .catch((error: unknown) => {
        if (!isStatus(error, 404, 409, 410)) throw error;
      });
  }

  #send(data: string, done: (error?: Error | null) => void): void {
    const { sessionId, commandId } = this.#command;
    this.#toolbox.sendInput(sessionId, commandId, { data, signal: this.#ending.signal }).then(
      () => done(),
      (error: unknown) => done(error as Error),
    );
  }
}
