import { LinkedAbort } from '../../../src/core/linked-abort.ts';
import type { InteractiveProcess } from '../../../src/environments/environment.ts';
import type { Egress, RunRequest, SandboxBody } from './sandbox-body.ts';

export type HostedState = 'creating' | 'running' | 'failed' | 'stopped' | 'removing' | 'removed';

interface HostedSandboxParts {
  readonly body: SandboxBody;
  /** The creation ends as failed. */
  readonly fails: boolean;
  /** How long the service takes for it. */
  readonly wait: (signal: AbortSignal) => Promise<void>;
  readonly hostEnding: AbortSignal;
  readonly onRemoved: () => void;
}

/** One sandbox of a fake service. */
export class HostedSandbox {
  readonly id: string;
  /** Resolves when programs run in it; rejects with what its creation failed with, or with its removal. */
  readonly ready: Promise<void>;
  readonly #parts: HostedSandboxParts;
  readonly #ending: LinkedAbort;
  #state: HostedState = 'creating';
  #removing: Promise<void> | null = null;

  constructor(id: string, parts: HostedSandboxParts) {
    this.id = id;
    this.#parts = parts;
    this.#ending = new LinkedAbort([parts.hostEnding]);
    this.ready = this.#start();
    this.ready.catch(() => undefined); // whoever waits for it is told
  }

  get state(): HostedState {
    return this.#state;
  }

  /** Its programs end at once. */
  get isLight(): boolean {
    return this.#parts.body.isLight;
  }

  /** Fires when it begins to be removed. */
  get ending(): AbortSignal {
    return this.#ending.signal;
  }

  get files(): SandboxBody['files'] {
    return this.#parts.body.files;
  }

  /** A program of a sandbox that does not run is ENVIRONMENT_LOST. */
  run(request: RunRequest): Promise<InteractiveProcess> {
    return this.#parts.body.run(request, this.#ending.signal);
  }

  /** Runs a program to its end. */
  async output(
    argv: readonly string[],
  ): Promise<{ readonly exitCode: number | null; readonly stdout: string }> {
    const pieces: Uint8Array[] = [];
    const program = await this.run({
      argv,
      onOutput: (stream, bytes) => {
        if (stream === 'stdout') pieces.push(Uint8Array.from(bytes));
      },
    });
    program.endInput();
    const exitCode = await program.exited;
    return { exitCode, stdout: Buffer.concat(pieces).toString('utf8') };
  }

  setEgress(egress: Egress): Promise<void> {
    return this.#parts.body.setEgress(egress, this.#ending.signal);
  }

  async stop(): Promise<void> {
    await this.ready.catch(() => undefined);
    if (this.#state !== 'running') return;
    this.#state = 'stopped';
    await this.#parts.body.stop();
  }

  /** Also while it is being made. Idempotent; concurrent calls share one ending. */
  remove(): Promise<void> {
    this.#removing ??= this.#remove();
    return this.#removing;
  }

  async #start(): Promise<void> {
    const { signal } = this.#ending;
    try {
      await this.#parts.wait(signal);
      if (this.#parts.fails) throw new Error('the service could not make the sandbox');
      await this.#parts.body.start(signal);
      signal.throwIfAborted();
      this.#state = 'running';
    } catch (error) {
      if (this.#state === 'creating') this.#state = 'failed';
      throw error;
    }
  }

  async #remove(): Promise<void> {
    this.#state = 'removing';
    this.#ending.abort(new Error('the sandbox is removed'));
    await this.ready.catch(() => undefined);
    await this.#parts.body.destroy();
    this.#state = 'removed';
    this.#ending[Symbol.dispose]();
    this.#parts.onRemoved();
  }
}
