import type {
  ControlChannel,
  ExecRequest,
  ExecResult,
} from '../../../src/environments/environment.ts';
import { lost, type FakeSandbox } from './fake-sandbox.ts';
import type { FakeProcess } from './process-table.ts';

/** A shell that stays open in a fake sandbox: a process of its own, whose commands are its children. */
export class FakeChannel implements ControlChannel {
  readonly #sandbox: FakeSandbox;
  readonly #user: string | number | null;
  readonly #shell: FakeProcess;
  #tail: Promise<unknown> = Promise.resolve();

  constructor(sandbox: FakeSandbox, user: string | number | null) {
    this.#sandbox = sandbox;
    this.#user = user;
    this.#shell = sandbox.processes.start({ argv: ['sh'], parent: null });
  }

  exec(
    request: Pick<ExecRequest, 'command' | 'cwd' | 'env' | 'timeoutMs'>,
    signal: AbortSignal,
  ): Promise<ExecResult> {
    const turn = this.#tail.then(async () => {
      signal.throwIfAborted();
      if (this.#shell.killed.aborted) throw lost(this.#sandbox.spec.name);
      return await this.#sandbox.exec({ ...request, user: this.#user }, signal, this.#shell);
    });
    this.#tail = turn.catch(() => undefined);
    return turn;
  }

  async close(): Promise<void> {
    this.#sandbox.processes.end(this.#shell);
  }
}
