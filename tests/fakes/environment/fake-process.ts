/**
 * An open program of a fake sandbox. just-bash takes all input at once and answers at the end, so what reads its input as it comes is played:
 * `cat` (alone, or followed by `; MORE`), and `sh` or `bash`, which run each line as it is written. Any other command runs with no input.
 */
import type { InteractiveProcess, ProcessRequest } from '../../../src/environments/environment.ts';
import { lost, type FakeSandbox } from './fake-sandbox.ts';
import type { FakeProcess } from './process-table.ts';

const pipeBytes = 64 * 1024;

export class FakeInteractive implements InteractiveProcess {
  readonly exited: Promise<number | null>;
  readonly #sandbox: FakeSandbox;
  readonly #request: ProcessRequest;
  readonly #process: FakeProcess;
  readonly #exit = Promise.withResolvers<number | null>();
  #work: Promise<unknown> = Promise.resolve();
  #line = '';
  #unread = 0;
  #isInputEnded = false;
  #hasEnded = false;

  constructor(sandbox: FakeSandbox, request: ProcessRequest, signal: AbortSignal) {
    this.#sandbox = sandbox;
    this.#request = request;
    this.#process = sandbox.processes.start({
      // A shell becomes the last command that it is given.
      argv: request.command === 'cat' ? ['cat'] : ['bash', '-c', request.command],
      parent: null,
    });
    const end = (): void => void sandbox.processes.end(this.#process);
    signal.addEventListener('abort', end, { once: true });
    this.#process.killed.addEventListener('abort', () => this.#end(null), { once: true });
    this.exited = this.#exit.promise.finally(() => {
      signal.removeEventListener('abort', end);
      end();
    });
    if (!this.#isCat && !this.#isShell) this.#run(request.command, (code) => this.#end(code));
  }

  async write(bytes: string | Uint8Array): Promise<void> {
    await Promise.resolve();
    if (this.#hasEnded) throw lost(this.#sandbox.spec.name);
    const taken = typeof bytes === 'string' ? Buffer.from(bytes) : Buffer.from(bytes);
    if (this.#isCat) this.#request.onOutput('stdout', taken);
    if (!this.#isCat && !this.#isShell) await this.#fill(taken.length);
    if (!this.#isShell) return;
    const lines = (this.#line + taken.toString('utf8')).split('\n');
    this.#line = lines.pop() ?? '';
    for (const line of lines) {
      const [, exit] = /^exit(?: (\d+))?$/.exec(line) ?? [];
      if (line.startsWith('exit')) this.#after(() => this.#end(Number(exit ?? 0)));
      else this.#run(line, () => undefined);
    }
  }

  endInput(): void {
    if (this.#isInputEnded) return;
    this.#isInputEnded = true;
    const rest = this.#isCat ? this.#request.command.replace(/^cat(; *)?/, '') : '';
    if (rest === '') this.#after(() => this.#end(0));
    else this.#run(rest, (code) => this.#end(code));
  }

  async kill(): Promise<void> {
    this.#sandbox.processes.end(this.#process);
    await this.exited;
  }

  get #isCat(): boolean {
    return /^cat(;|$)/.test(this.#request.command);
  }

  get #isShell(): boolean {
    return ['sh', 'bash'].includes(this.#request.command);
  }

  #run(command: string, onEnd: (code: number | null) => void): void {
    this.#after(async () => {
      const { cwd = null, env = {}, user = null } = this.#request;
      const request = { command, cwd, env, user };
      const result = await this.#sandbox
        .exec(request, this.#process.killed, this.#process)
        .catch(() => null);
      if (this.#hasEnded) return;
      if (result !== null) this.#pass(result);
      onEnd(result?.exitCode ?? null);
    });
  }

  #pass(result: { readonly stdout: string; readonly stderr: string }): void {
    for (const stream of ['stdout', 'stderr'] as const)
      if (result[stream] !== '') this.#request.onOutput(stream, Buffer.from(result[stream]));
  }

  /** Nobody reads: a pipe takes so much, then a write waits for the end. */
  async #fill(bytes: number): Promise<void> {
    this.#unread += bytes;
    if (this.#unread <= pipeBytes) return;
    await this.exited;
    throw lost(this.#sandbox.spec.name);
  }

  #after(work: () => unknown): void {
    this.#work = this.#work.then(work);
  }

  #end(code: number | null): void {
    this.#hasEnded = true;
    this.#exit.resolve(code === 137 ? null : code);
  }
}
