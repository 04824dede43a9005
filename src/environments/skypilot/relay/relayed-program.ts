/** A program of the sandbox behind the scripts of `relay-scripts.ts`: its output is fetched by looks that wait for news, its input goes in numbered pieces. */
import { randomBytes } from 'node:crypto';
import { Writable } from 'node:stream';
import { RolloutError } from '../../../core/errors.ts';
import { LinkedAbort, never } from '../../../core/linked-abort.ts';
import { raceSignal } from '../../../core/race-signal.ts';
import { isSkyError } from '../sky-error.ts';
import type { Executed, SkyService } from '../sky-service.ts';
import {
  killArgv,
  killPidArgv,
  lookArgv,
  lookLimitSec,
  maxLookBytes,
  maxPieceBytes,
  pieceVariable,
  pushArgv,
  startArgv,
  type StartScript,
} from './relay-scripts.ts';

const killMs = 10_000;
/** What a shell reports for a process that was SIGKILLed. */
const killedExitCode = 137;
const mostFoldersAtOnce = 50;
/** Every script of ours says something: without a word its answer was lost between the pod and the service. */
const maxSilences = 3;

/** Where programs run. */
export interface RelayTarget {
  readonly service: SkyService;
  /** The sandbox, by its name at the service. */
  readonly sandbox: string;
  /** Fires with the reason when the sandbox is stopped or removed by this process. */
  readonly ending: AbortSignal;
  /** Folders of programs that ended: they go with the next start. */
  readonly endedPrograms: string[];
}

export interface ProgramRequest extends Pick<
  StartScript,
  'hasInput' | 'user' | 'shell' | 'cwd' | 'command' | 'until'
> {
  readonly env: Readonly<Record<string, string>>;
  readonly onOutput: (stream: 'stdout' | 'stderr', bytes: Buffer) => void;
}

export class RelayedProgram {
  readonly #id = randomBytes(12).toString('hex');
  readonly #target: RelayTarget;
  readonly #onOutput: ProgramRequest['onOutput'];
  readonly #offsets = { out: 0, err: 0 };
  /** Gives up the looks of a program that was killed and whose sandbox does not answer. */
  readonly #giveUp = new LinkedAbort([]);
  readonly #ended = Promise.withResolvers<number | null>();
  #pieces = 0;
  #hasEnded = false;
  #killing: Promise<void> | null = null;
  readonly stdin: Writable;

  private constructor(target: RelayTarget, onOutput: ProgramRequest['onOutput']) {
    this.#target = target;
    this.#onOutput = onOutput;
    this.#ended.promise.catch(() => undefined);
    this.stdin = new Writable({
      highWaterMark: maxPieceBytes,
      write: (chunk: Buffer, _encoding, done) => {
        this.#push(chunk).then(() => done(), done);
      },
      final: (done) => {
        this.#pushEnd().then(() => done(), done);
      },
    });
    this.stdin.on('error', () => undefined); // whoever writes is told
  }

  /** EXEC_FAILED says why it cannot be started. When `signal` fires whatever was started is killed, and it rejects with the reason. */
  static async start(
    target: RelayTarget,
    request: ProgramRequest,
    signal: AbortSignal,
  ): Promise<RelayedProgram> {
    signal.throwIfAborted();
    target.ending.throwIfAborted();
    const { env, onOutput, ...script } = request;
    const program = new RelayedProgram(target, onOutput);
    const ended = target.endedPrograms.splice(0, mostFoldersAtOnce);
    const argv = startArgv({ ...script, id: program.#id, ended });
    // Followed also when it is killed meanwhile: the kill waits for its end.
    const started = program.#execute(argv, env).then((answer) => {
      if (!program.#hear(answer)) program.#follow();
    });
    started.catch((error: unknown) => program.#fail(error));
    try {
      await raceSignal(started, signal);
      return program;
    } catch (error) {
      if (signal.aborted) await program.kill().catch(() => undefined); // the first cause is told
      throw error;
    }
  }

  /** The exit code; null when it was killed with its keeper. Rejects with ENVIRONMENT_LOST when the sandbox has gone, else with what its looks failed with. */
  get ended(): Promise<number | null> {
    return this.#ended.promise;
  }

  /** SIGKILLs it with its descendants; `ended` settles. Idempotent. */
  kill(): Promise<void> {
    this.#killing ??= this.#kill();
    return this.#killing;
  }

  /** The same for one of its descendants. */
  async killTree(pid: number): Promise<void> {
    using limit = killLimit();
    await this.#run(killPidArgv(pid), limit.signal);
  }

  async #kill(): Promise<void> {
    if (this.#hasEnded) return;
    using limit = killLimit();
    try {
      await this.#run(killArgv(this.#id), limit.signal);
      await raceSignal(
        this.#ended.promise.catch(() => undefined),
        limit.signal,
      );
    } finally {
      this.#giveUp.abort(new RolloutError('ENVIRONMENT_LOST', 'the program was killed', at));
      this.#end(null);
    }
  }

  #follow(): void {
    void (async () => {
      try {
        for (;;) {
          const answer = await this.#execute(lookArgv(this.#id, this.#offsets), {});
          if (this.#hear(answer)) return;
        }
      } catch (error) {
        this.#fail(error);
      }
    })();
  }

  /** Delivers what a look brought; true when the program has ended and all of its output was delivered. */
  #hear({ exitCode, stdout, stderr }: Executed): boolean {
    const [head = '', out = '', err = ''] = stdout.toString('latin1').split('\n');
    const [word, code = '', fault = '-', outBytes = 0, errBytes = 0] = head.split(' ');
    if (word !== 'slipway' || code === 'no-folder') {
      const said = Buffer.concat([stdout, stderr]).toString('utf8').trim().slice(-2000);
      throw unusable(`exit code ${exitCode}${said === '' ? '' : `: ${said}`}`);
    }
    if (fault !== '-') throw refused(fault);
    this.#deliver('stdout', Buffer.from(out, 'base64'));
    this.#deliver('stderr', Buffer.from(err, 'base64'));
    if (code === '-' || Math.max(Number(outBytes), Number(errBytes)) > maxLookBytes) return false;
    this.#target.endedPrograms.push(this.#id);
    this.#end(code === 'lost' ? null : Number(code));
    return true;
  }

  #deliver(stream: 'stdout' | 'stderr', bytes: Buffer): void {
    this.#offsets[stream === 'stdout' ? 'out' : 'err'] += bytes.length;
    if (bytes.length > 0 && this.#killing === null) this.#onOutput(stream, bytes);
  }

  async #push(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length; at += maxPieceBytes) {
      this.#pieces += 1;
      const piece = bytes.subarray(at, at + maxPieceBytes).toString('base64');
      const argv = pushArgv(this.#id, this.#pieces);
      for (;;) {
        const { stdout } = await this.#execute(argv, { [pieceVariable]: piece });
        const taken = /^slipway (\d+|over)/.exec(stdout.toString('latin1'))?.[1];
        if (taken === undefined || taken === 'over') throw new Error('the program has ended');
        if (Number(taken) >= this.#pieces) break;
      }
    }
  }

  async #pushEnd(): Promise<void> {
    if (!this.#hasEnded) await this.#execute(pushArgv(this.#id, null), {});
  }

  async #execute(argv: readonly string[], env: Readonly<Record<string, string>>) {
    using link = new LinkedAbort([this.#target.ending, this.#giveUp.signal]);
    for (let attempt = 1; ; attempt += 1) {
      const answer = await this.#run(argv, link.signal, env);
      if (answer.stdout.length > 0 || attempt === maxSilences) return answer;
    }
  }

  async #run(
    argv: readonly string[],
    signal: AbortSignal,
    env: Readonly<Record<string, string>> = {},
  ): Promise<Executed> {
    const { service, sandbox } = this.#target;
    return await service.execute(
      { name: sandbox, argv, env, limitSec: lookLimitSec, repeatable: true },
      signal,
    );
  }

  #end(code: number | null): void {
    this.#hasEnded = true;
    this.#ended.resolve(this.#killing !== null || code === killedExitCode ? null : code);
    this.stdin.destroy();
  }

  #fail(error: unknown): void {
    this.#hasEnded = true;
    this.#ended.reject(isSkyError(error, 'not-found') ? lostSandbox(error) : (error as Error));
    this.stdin.destroy();
  }
}

const at = { phase: 'environment', retryable: false } as const;

function killLimit(): LinkedAbort {
  const reason = (): RolloutError =>
    new RolloutError('EXEC_FAILED', `a program was not killed within ${killMs / 1000} s`, at);
  return new LinkedAbort([never], { ms: killMs, reason });
}

export function lostSandbox(cause: unknown): RolloutError {
  return new RolloutError('ENVIRONMENT_LOST', 'the sandbox is gone', {
    phase: 'environment',
    cause,
    remedy: 'Look at the SkyPilot dashboard for who ended it; it may have outlived its lifetime.',
  });
}

function refused(fault: string): RolloutError {
  const [why, remedy] =
    fault === 'user'
      ? ['the image does not know the user', 'Name a user of the image, or a numeric id.']
      : fault === 'cwd'
        ? ['the working folder is not there', 'Create the folder before, or leave "cwd" out.']
        : [
            'the image cannot change to another user',
            'Use an image that runs as root and has setpriv (util-linux) or su.',
          ];
  return new RolloutError('EXEC_FAILED', `the command could not be started: ${why}`, {
    ...at,
    remedy,
  });
}

function unusable(said: string): RolloutError {
  return new RolloutError('EXEC_FAILED', `the command could not be started: ${said}`, {
    ...at,
    remedy: 'Check that the image has a POSIX sh and coreutils, and that its disk is not full.',
  });
}
