/**
 * One process of Python that carries out users' code, one order at a time (`wire/runner/runner-messages.ts`). It leads a process group of its own; whatever
 * it leaves in the group dies with it, and it dies with the server.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import path from 'node:path';
import type { z } from 'zod';
import { isRolloutError, messageOf } from '../core/errors.ts';
import { lowerId } from '../core/ids.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import {
  fromRunnerSchema,
  maxRunnerLineBytes,
  runnerProtocolVersion,
  type FromRunner,
  type RunnerRefusal,
  type RunnerRole,
  type ToRunner,
} from '../wire/runner/runner-messages.ts';
import {
  runnerPackageDir,
  runnerProgram,
  runnerVariables,
  type PythonInterpreter,
} from './interpreter.ts';
import { LineReader } from '../core/line-reader.ts';
import { PrintedText } from './printed-text.ts';
import { describeExit, RunnerBroken, RunnerEnded } from './runner-ended.ts';

const defaultStartMs = 120_000;
/** Between SIGTERM and SIGKILL. */
const termGraceMs = 250;
/** For what is still in the pipes of a dead runner: somebody outside its group may hold them for ever. */
const drainMs = 250;
/** For what the user's code printed to come in, after its order has ended. */
const printedMs = 1_000;

export interface RunnerOptions {
  readonly role: RunnerRole;
  readonly interpreter: PythonInterpreter;
  /** What the role needs to get ready: plain JSON. */
  readonly settings: unknown;
  /** Variables of the runner, without those that it brings: as a rule all of the server. */
  readonly variables: Readonly<Record<string, string | undefined>>;
  /** Absent = where the server runs. */
  readonly cwd?: string;
  /** Most that its data may take; absent = no limit. */
  readonly memoryMb?: number;
  readonly startMs?: number;
  /** Called once, when the process is gone. */
  readonly onGone?: () => void;
}

/** Answers what the runner asks of the server. What it throws is raised in the runner; `signal` fires when nobody waits for the answer any more. */
export type RunnerAnswerer = (
  method: string,
  params: unknown,
  signal: AbortSignal,
) => Promise<unknown>;

export interface RunnerOrder<Report> {
  /** Plain JSON. */
  readonly order: unknown;
  readonly report: z.ZodType<Report>;
  /** Absent = the runner may ask for nothing. */
  readonly answer?: RunnerAnswerer;
}

export interface RunnerReady {
  /** Version of the interpreter. */
  readonly python: string;
  readonly details: Readonly<Record<string, unknown>>;
}

interface RunningOrder {
  readonly id: number;
  readonly answer: RunnerAnswerer | null;
  readonly ended: PromiseWithResolvers<unknown>;
}

export class RunnerProcess {
  readonly #child: ChildProcess;
  readonly #printed: PrintedText;
  readonly #ready = Promise.withResolvers<RunnerReady>();
  readonly #gone = Promise.withResolvers<undefined>();
  readonly #onGone: () => void;
  readonly #startLimit: LinkedAbort;
  readonly #requests = new Map<number, LinkedAbort>();
  #order: RunningOrder | null = null;
  #count = 0;
  #end: RunnerEnded | null = null;
  #isExited = false;
  #isGone = false;
  #onPrint: ((text: string) => void) | null = null;
  #termination: Promise<void> | null = null;

  constructor(options: RunnerOptions) {
    const { role, interpreter, settings, startMs = defaultStartMs, memoryMb = null } = options;
    const mark = `slipway-${lowerId(16)}`;
    this.#onGone = options.onGone ?? ((): void => undefined);
    this.#printed = new PrintedText(mark, (text) => this.#onPrint?.(text));
    this.#ready.promise.catch(() => undefined);
    const program = path.join(runnerPackageDir, runnerProgram);
    this.#child = spawn(interpreter.python, ['-u', program, role], {
      stdio: ['pipe', 'pipe', 'pipe'],
      detached: true,
      env: runnerVariables(interpreter, options.variables),
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    });
    this.#listen();
    this.#startLimit = new LinkedAbort([], { ms: startMs, reason: () => undefined });
    this.#startLimit.signal.addEventListener('abort', () =>
      this.#fail(new RunnerEnded('late', `was not ready within ${startMs / 1000}s`)),
    );
    this.#send({ kind: 'start', version: runnerProtocolVersion, mark, memoryMb, settings });
  }

  /** Resolves when it can take orders; rejects with RunnerBroken when the user's code cannot be loaded, with RunnerEnded when the process is gone. */
  get ready(): Promise<RunnerReady> {
    return this.#ready.promise;
  }

  get isGone(): boolean {
    return this.#isGone;
  }

  /** Of the process that was started; null = it could not be. */
  get pid(): number | null {
    return this.#child.pid ?? null;
  }

  /** What the user's code prints goes there until the next call. */
  set onPrint(listener: ((text: string) => void) | null) {
    this.#onPrint = listener;
  }

  /** One at a time. Rejects with RunnerEnded when the runner is gone first. */
  async carryOut<Report>({ order, report, answer }: RunnerOrder<Report>): Promise<Report> {
    if (this.#order !== null) throw new Error('a runner carries out one order at a time');
    if (this.#isGone) throw this.#end ?? new RunnerEnded('terminated', 'has ended');
    this.#count += 1;
    const id = this.#count;
    const ended = Promise.withResolvers<unknown>();
    this.#order = { id, answer: answer ?? null, ended };
    this.#send({ kind: 'order', id, order });
    try {
      const parsed = report.safeParse(await ended.promise);
      if (parsed.success) return parsed.data;
      const problem = new RunnerEnded('protocol', `gave a report that cannot be read`);
      this.#fail(problem);
      throw problem;
    } finally {
      this.#order = null;
      for (const request of this.#requests.values())
        request.abort(new Error('the order has ended'));
    }
  }

  /** Tells the code of the order that runs to stop; whether it does is its own affair. */
  cancel(reason: string): void {
    if (this.#order !== null) this.#send({ kind: 'cancel', id: this.#order.id, reason });
  }

  /** Ends the whole process group: politely, a moment later by force. Resolves when the runner is gone. Idempotent. */
  terminate(): Promise<void> {
    this.#termination ??= this.#terminateNow();
    return this.#termination;
  }

  async #terminateNow(): Promise<void> {
    this.#end ??= new RunnerEnded('terminated', 'was ended');
    if (!this.#isExited) this.#kill('SIGTERM');
    using force = new LinkedAbort([], { ms: termGraceMs, reason: () => undefined });
    force.signal.addEventListener('abort', () => this.#kill('SIGKILL'));
    await this.#gone.promise;
  }

  #listen(): void {
    const { stdin, stdout, stderr } = this.#child;
    stdin?.on('error', () => undefined); // a runner that no longer reads says so by its exit
    const reader = new LineReader(
      maxRunnerLineBytes,
      (line) => this.#read(line),
      () => this.#fail(new RunnerEnded('protocol', 'wrote a line that is too long')),
    );
    stdout?.on('data', (chunk: Buffer) => reader.push(chunk));
    stderr?.on('data', (chunk: Buffer) => this.#printed.push(chunk));
    this.#child.on('error', (error) => {
      if (this.#child.pid !== undefined) return; // a signal that came too late
      this.#end ??= new RunnerEnded('unstartable', `cannot be started: ${messageOf(error)}`);
      this.#finish();
    });
    this.#child.once('exit', (code, signal) => void this.#exited(code, signal));
  }

  async #exited(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    this.#isExited = true;
    this.#kill('SIGKILL');
    const closed = new Promise((resolve) => this.#child.once('close', resolve));
    using limit = new LinkedAbort([], { ms: drainMs, reason: () => undefined });
    limit.signal.addEventListener('abort', () => {
      this.#child.stdout?.destroy();
      this.#child.stderr?.destroy();
    });
    await closed;
    this.#end ??= describeExit(code, signal, this.#printed.tail);
    this.#finish();
  }

  #finish(): void {
    if (this.#isGone) return;
    this.#isGone = true;
    this.#startLimit[Symbol.dispose]();
    this.#printed.end();
    const end = this.#end ?? new RunnerEnded('terminated', 'has ended');
    this.#ready.reject(end);
    this.#order?.ended.reject(end);
    for (const request of this.#requests.values()) request.abort(end);
    this.#gone.resolve(undefined);
    this.#onGone();
  }

  /** The first reason stays; the order hears of it when the process is gone. */
  #fail(end: RunnerEnded): void {
    this.#end ??= end;
    void this.terminate();
  }

  #read(line: string): void {
    if (this.#end !== null) return;
    let message: FromRunner;
    try {
      message = fromRunnerSchema.parse(JSON.parse(line));
    } catch {
      this.#fail(new RunnerEnded('protocol', 'wrote a line that cannot be read'));
      return;
    }
    this.#hear(message);
  }

  #hear(message: FromRunner): void {
    switch (message.kind) {
      case 'ready':
        this.#startLimit[Symbol.dispose]();
        this.#ready.resolve({ python: message.python, details: message.details });
        break;
      case 'broken':
        this.#startLimit[Symbol.dispose]();
        this.#ready.reject(new RunnerBroken(message.message, message.missing ?? null));
        void this.terminate();
        break;
      case 'ended':
        void this.#ended(message.id, message.report);
        break;
      case 'request':
        void this.#answer(message);
        break;
      case 'withdraw':
        this.#requests.get(message.id)?.abort(new Error('the runner no longer waits'));
    }
  }

  /** What was printed before the end is heard before the end. */
  async #ended(id: number, report: unknown): Promise<void> {
    const order = this.#order;
    if (order?.id !== id) return;
    using limit = new LinkedAbort([], { ms: printedMs, reason: () => undefined });
    const late = new Promise<void>((resolve) =>
      limit.signal.addEventListener('abort', () => resolve()),
    );
    await Promise.race([this.#printed.heard(id), late]);
    order.ended.resolve(report);
  }

  async #answer({ id, method, params }: Extract<FromRunner, { kind: 'request' }>): Promise<void> {
    const answer = this.#order?.answer ?? null;
    using asked = new LinkedAbort([]);
    this.#requests.set(id, asked);
    try {
      if (answer === null) throw new Error(`nobody answers ${method} now`);
      const value = await answer(method, params, asked.signal);
      if (!asked.signal.aborted) this.#send({ kind: 'answer', id, value: value ?? null });
    } catch (error) {
      if (!asked.signal.aborted) this.#send({ kind: 'refusal', id, error: refusalOf(error) });
    } finally {
      this.#requests.delete(id);
    }
  }

  #send(message: ToRunner): void {
    if (this.#child.stdin?.writable === true)
      this.#child.stdin.write(`${JSON.stringify(message)}\n`);
  }

  #kill(signal: NodeJS.Signals): void {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, signal);
    } catch {
      // Nobody is left in the group.
    }
  }
}

function refusalOf(error: unknown): RunnerRefusal {
  const message = messageOf(error);
  if (isRolloutError(error)) return { code: error.code, message };
  return { code: error instanceof Error ? error.name : 'Error', message };
}
