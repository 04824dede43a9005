/** Commands, control channels and open programs of a sandbox that is somewhere else, over `Attach`. The contracts are those of the environment port. */
import { PassThrough } from 'node:stream';
import { systemClock } from '../../../core/clock.ts';
import { RolloutError } from '../../../core/errors.ts';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import { raceSignal } from '../../../core/race-signal.ts';
import {
  maxCapturedBytes,
  type ControlChannel,
  type ExecRequest,
  type ExecResult,
  type InteractiveProcess,
  type ProcessRequest,
} from '../../environment.ts';
import { AttachedProcess, startLimit } from '../attached-process.ts';
import { CapturedOutput } from '../captured-output.ts';
import { HeldOutput } from '../held-output.ts';
import { killTreeScript } from '../kill-tree.ts';
import { ShellChannel } from '../shell-channel.ts';
import type { Attach, ProgramEnd } from './attached-program.ts';
import { begun, runInside, type RunningProgram } from './running-program.ts';

export interface InsideOptions {
  readonly attach: Attach;
  /** Whether the end of an input can be told to a program that goes on. */
  readonly endsInput: () => boolean;
  /** Default working folder of commands; null = the image's. */
  readonly workdir: string | null;
  /** Whether the provider still has the sandbox and means to keep it. Never rejects. */
  readonly isAlive: () => Promise<boolean>;
  /** Whether this process is ending the sandbox: commands that are killed then are lost, not finished. */
  readonly isEnding: () => boolean;
  /** Attributes what `attach` rejected with. */
  readonly failure: (error: unknown, what: string) => RolloutError;
}

/** From the first try to kill a command to its proven end. */
const killDeadlineMs = 20_000;
/** A provider may learn of a sandbox's end a moment after its processes are dead. */
const lateEndMs = 300;

export class InsideCommands {
  readonly #options: InsideOptions;
  readonly #channels = new Set<ControlChannel>();
  readonly #programs = new Set<InteractiveProcess>();

  constructor(options: InsideOptions) {
    this.#options = options;
  }

  async exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    return await this.run(request, 'bash', signal);
  }

  /** As `exec`, by the shell that is named. */
  async run(request: ExecRequest, shell: 'bash' | 'sh', signal: AbortSignal): Promise<ExecResult> {
    signal.throwIfAborted();
    const timeoutMs = request.timeoutMs ?? null;
    using limit = new LinkedAbort(
      [signal],
      timeoutMs === null ? undefined : { ms: timeoutMs, reason: () => timedOut(timeoutMs) },
    );
    const onOutput = request.onOutput ?? ((): void => undefined);
    const stdout = new CapturedOutput(maxCapturedBytes, (text) => onOutput('stdout', text));
    const stderr = new CapturedOutput(maxCapturedBytes, (text) => onOutput('stderr', text));
    try {
      const program = await runInside(
        this.#options.attach,
        {
          ...this.#command(request),
          run: shell,
          input: this.#inputOf(request.stdin),
        },
        {
          onOutput: (stream, bytes) => (stream === 'stdout' ? stdout : stderr).write(bytes),
          signal: limit.signal,
        },
      );
      if (request.stdin !== undefined) program.stdin.write(request.stdin);
      if (this.#options.endsInput()) program.stdin.end();
      const end = await this.#endOrKill(program, limit.signal);
      stdout.end();
      stderr.end();
      const exitCode = await this.#exitCode(end);
      if ((await program.pid) === null) throw neverRan(stdout.text() + stderr.text());
      return {
        exitCode,
        stdout: stdout.text(),
        stderr: stderr.text(),
        isTruncated: stdout.isTruncated || stderr.isTruncated,
      };
    } catch (error) {
      limit.signal.throwIfAborted();
      throw this.#options.failure(error, 'running a command');
    }
  }

  async openControl(options: {
    readonly user?: string | number | null;
    readonly signal: AbortSignal;
  }): Promise<ControlChannel> {
    const { user = null, signal } = options;
    const stdout = new PassThrough({ highWaterMark: 1024 * 1024 });
    const stderr = new PassThrough({ highWaterMark: 1024 * 1024 });
    stdout.resume();
    stderr.resume();
    let early = ''; // why a shell cannot be started
    using limit = startLimit(signal);
    try {
      const program = await runInside(
        this.#options.attach,
        { run: 'shell', cwd: null, env: {}, user, input: 'open' },
        {
          onOutput: (stream, bytes) => {
            if (early.length < 2000) early += bytes.toString('utf8');
            (stream === 'stdout' ? stdout : stderr).write(bytes);
          },
          signal: limit.signal,
        },
      );
      const pid = await begun(program, limit.signal);
      if (pid === null) throw neverRan(early);
      const ended = program.ended.then(() => undefined);
      const channel = new ShellChannel(
        {
          stdin: program.stdin,
          stdout,
          stderr,
          ended,
          killTree: (inside) => this.killTree(inside),
          kill: () => this.#killAndLetGo(program, pid),
        },
        { defaultCwd: this.#options.workdir },
      );
      this.#channels.add(channel);
      void ended.then(() => this.#channels.delete(channel));
      return channel;
    } catch (error) {
      limit.signal.throwIfAborted();
      throw this.#options.failure(error, 'opening a shell');
    }
  }

  async openProcess(request: ProcessRequest, signal: AbortSignal): Promise<InteractiveProcess> {
    signal.throwIfAborted();
    const output = new HeldOutput(request.onOutput);
    using limit = startLimit(signal);
    try {
      const program = await runInside(
        this.#options.attach,
        { ...this.#command(request), run: 'bash', input: 'open' },
        { onOutput: (stream, bytes) => output.write(stream, bytes), signal: limit.signal },
      );
      const pid = await begun(program, limit.signal);
      if (pid === null) throw neverRan(output.text());
      output.release();
      const opened = new AttachedProcess(
        {
          stdin: program.stdin,
          ended: program.ended.then((end) => this.#exitCode(end)).catch(() => null),
          kill: () => this.#killAndLetGo(program, pid),
        },
        signal,
      );
      this.#programs.add(opened);
      void opened.exited.then(() => this.#programs.delete(opened));
      return opened;
    } catch (error) {
      limit.signal.throwIfAborted();
      throw this.#options.failure(error, 'starting a program');
    }
  }

  /** Ends control channels and open programs. */
  async closeAll(): Promise<void> {
    const open = [...this.#channels];
    this.#channels.clear();
    await Promise.all([
      ...open.map((channel) => channel.close()),
      ...[...this.#programs].map((program) => program.kill()),
    ]);
  }

  /** SIGKILLs a process, its group and its descendants, named by the pid inside. */
  async killTree(pid: number): Promise<void> {
    using limit = new LinkedAbort([], {
      ms: killDeadlineMs,
      reason: () => timedOut(killDeadlineMs),
    });
    const command = `${killTreeScript(pid)}\nkill -KILL -${pid} 2>/dev/null; :`;
    const program = await runInside(
      this.#options.attach,
      { run: 'sh', command, cwd: '/', env: {}, user: null, input: 'none' },
      { onOutput: () => undefined, signal: limit.signal },
    );
    await raceSignal(program.ended, limit.signal).finally(() => program.detach());
  }

  async #endOrKill(program: RunningProgram, signal: AbortSignal): Promise<ProgramEnd> {
    try {
      return await raceSignal(program.ended, signal);
    } catch (error) {
      using grace = new LinkedAbort([], {
        ms: killDeadlineMs,
        reason: () => timedOut(killDeadlineMs),
      });
      await raceSignal(
        program.pid.then((pid) => (pid === null ? undefined : this.killTree(pid))),
        grace.signal,
      ).catch(() => undefined); // the first cause is reported; what survives is found by killProcesses
      program.detach();
      throw error;
    }
  }

  async #killAndLetGo(program: RunningProgram, pid: number): Promise<void> {
    if (!this.#options.isEnding()) await this.killTree(pid).catch(() => undefined); // the sandbox may be gone, and the program with it
    program.detach();
  }

  /** 137 and 143 are also what a command leaves that died with its sandbox: only the provider tells. */
  async #exitCode(end: ProgramEnd): Promise<number> {
    if (end.kind === 'exited' && end.exitCode !== 137 && end.exitCode !== 143) return end.exitCode;
    for (const waitMs of [0, lateEndMs]) {
      await systemClock.sleep(waitMs, AbortSignal.timeout(killDeadlineMs));
      if (this.#options.isEnding() || !(await this.#options.isAlive())) throw lost(end);
    }
    if (end.kind === 'exited') return end.exitCode;
    throw new RolloutError('EXEC_FAILED', 'the stream of a command broke', {
      phase: 'environment',
      cause: end.cause,
    });
  }

  #command(request: ProcessRequest | ExecRequest): {
    readonly command: string;
    readonly cwd: string | null;
    readonly env: Readonly<Record<string, string>>;
    readonly user: string | number | null;
  } {
    return {
      command: request.command,
      cwd: request.cwd ?? this.#options.workdir,
      env: request.env ?? {},
      user: request.user ?? null,
    };
  }

  #inputOf(stdin: Uint8Array | undefined): 'none' | 'open' | number {
    if (stdin === undefined) return 'none';
    return this.#options.endsInput() ? 'open' : stdin.length;
  }
}

function lost(end: ProgramEnd): RolloutError {
  return new RolloutError('ENVIRONMENT_LOST', 'the sandbox ended while a command ran in it', {
    phase: 'environment',
    cause: end.kind === 'lost' ? end.cause : undefined,
  });
}

function neverRan(output: string): RolloutError {
  const detail = output.trim().slice(0, 2000);
  return new RolloutError('EXEC_FAILED', `the command could not be started: ${detail}`, {
    phase: 'environment',
    retryable: false,
    detail,
    remedy: 'Check that the user and the working folder exist and that the image has a shell.',
  });
}

function timedOut(ms: number): RolloutError {
  return new RolloutError('EXEC_TIMEOUT', `the command ran longer than ${ms} ms`, {
    phase: 'environment',
  });
}
