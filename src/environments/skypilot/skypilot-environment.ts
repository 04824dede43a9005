import { RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { raceSignal } from '../../core/race-signal.ts';
import type {
  ControlChannel,
  DestroyReceipt,
  DownloadOptions,
  Environment,
  EnvironmentSpec,
  ExecRequest,
  ExecResult,
  InteractiveProcess,
  KillReceipt,
  ProcessRequest,
  ProcessSnapshot,
  ServiceAccess,
  StartReport,
} from '../environment.ts';
import { OneRemoval, startIsOver } from '../shared/one-removal.ts';
import { openInteractive, openShell, runCommand } from './commands.ts';
import type { RelayTarget } from './relay/relayed-program.ts';
import { defaultDestroyMs, removeSandbox, stillCreating } from './removal.ts';
import { createSandbox, furnish, prepareImage, type SkyParts } from './sandbox-boot.ts';
import { SandboxProcesses } from './sandbox-processes.ts';
import { skyName } from './sky-names.ts';
import {
  downloadDir,
  downloadFile,
  uploadDir,
  uploadFile,
  type TransferTarget,
} from './transfers.ts';

const aliveMs = 15_000;

/** One sandbox of SkyPilot: a pod on a cluster of the user's. */
export class SkypilotEnvironment implements Environment {
  readonly name: string;
  readonly hostEndpointUrl = null;
  readonly #spec: EnvironmentSpec;
  readonly #parts: SkyParts;
  readonly #processes: SandboxProcesses;
  readonly #relay: RelayTarget;
  /** Fires when commands can no longer run: stopped or removed by this process. */
  readonly #ending = new LinkedAbort([]);
  readonly #channels = new Set<ControlChannel>();
  readonly #opened = new Set<InteractiveProcess>();
  #starting: LinkedAbort | null = null;
  #booting: Promise<void> | null = null;
  #hasStarted = false;
  readonly #removal = new OneRemoval();

  constructor(spec: EnvironmentSpec, parts: SkyParts) {
    this.name = spec.name;
    this.#spec = spec;
    this.#parts = parts;
    const sandbox = skyName(spec.name);
    const { service } = parts;
    this.#processes = new SandboxProcesses(service, sandbox);
    this.#relay = { service, sandbox, ending: this.#ending.signal, endedPrograms: [] };
  }

  async start(options: {
    readonly signal: AbortSignal;
    readonly onProgress?: (line: string) => void;
    readonly admitCreate?: (signal: AbortSignal) => Promise<void>;
  }): Promise<StartReport> {
    options.signal.throwIfAborted();
    if (this.#starting !== null || this.#removal.hasBegun)
      throw new RolloutError('INTERNAL', 'a sandbox is started once', { phase: 'environment' });
    using starting = new LinkedAbort([options.signal]); // also aborted by destroy
    this.#starting = starting;
    const { signal } = starting;
    const { onProgress = (): void => undefined, admitCreate = () => Promise.resolve() } = options;
    const began = performance.now();
    const image = await prepareImage(this.#spec, this.#parts, { signal, onProgress });
    const imageReady = performance.now();
    await admitCreate(signal);
    signal.throwIfAborted();
    // Not under the signal: an answer that nobody heard would be a sandbox that nobody knows.
    this.#booting = createSandbox(this.#spec, this.#parts, {
      image,
      signal: this.#ending.signal,
      admitCreate,
    });
    await raceSignal(this.#booting, signal);
    await furnish(this.#spec, this.#parts, signal);
    await this.#processes.learn(signal);
    signal.throwIfAborted();
    this.#hasStarted = true;
    return { imageMs: imageReady - began, bootMs: performance.now() - imageReady };
  }

  exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    const withCwd = { ...request, cwd: request.cwd ?? this.#spec.workdir };
    return this.#run(() => runCommand(this.#relay, { ...withCwd, shell: 'bash' }, signal));
  }

  openControl(options: {
    readonly user?: string | number | null;
    readonly signal: AbortSignal;
  }): Promise<ControlChannel> {
    const { signal, user = null } = options;
    return this.#run(async () => {
      const cwd = this.#spec.workdir;
      const channel = await openShell(this.#relay, { user, cwd, signal });
      this.#channels.add(channel);
      return channel;
    });
  }

  openProcess(request: ProcessRequest, signal: AbortSignal): Promise<InteractiveProcess> {
    const withCwd = { ...request, cwd: request.cwd ?? this.#spec.workdir };
    return this.#run(async () => {
      const opened = await openInteractive(this.#relay, withCwd, signal);
      this.#opened.add(opened);
      void opened.exited.then(() => this.#opened.delete(opened));
      return opened;
    });
  }

  uploadFile(from: string, to: string, signal: AbortSignal): Promise<void> {
    return this.#copy((target) => uploadFile(target, from, to, signal));
  }

  uploadDir(from: string, to: string, signal: AbortSignal): Promise<void> {
    return this.#copy((target) => uploadDir(target, from, to, signal));
  }

  downloadFile(
    from: string,
    to: string,
    signal: AbortSignal,
    options?: DownloadOptions,
  ): Promise<void> {
    return this.#copy((target) => downloadFile(target, from, to, { ...options, signal }));
  }

  downloadDir(
    from: string,
    to: string,
    signal: AbortSignal,
    options?: DownloadOptions,
  ): Promise<{ readonly skipped: readonly string[] }> {
    return this.#copy((target) => downloadDir(target, from, to, { ...options, signal }));
  }

  async isAlive(signal: AbortSignal): Promise<boolean> {
    if (!this.#hasStarted || this.#ending.signal.aborted) return false;
    using limit = new LinkedAbort([signal], { ms: aliveMs, reason: () => new Error('no answer') });
    const { service, sandbox: name } = this.#relay;
    const request = { name, argv: ['true'], limitSec: aliveMs / 1000, repeatable: true };
    return await service.execute(request, limit.signal).then(
      ({ exitCode }) => exitCode === 0,
      () => false,
    );
  }

  snapshotProcesses(signal: AbortSignal): Promise<ProcessSnapshot> {
    return this.#run(() => this.#processes.snapshot(signal));
  }

  killProcesses(keep: ProcessSnapshot, signal: AbortSignal): Promise<KillReceipt> {
    return this.#run(async () => {
      // First: a shell that was open at the snapshot is in `keep`, and could start something behind the killing.
      await this.#closeOpened();
      return await this.#processes.kill(keep, signal);
    });
  }

  /** This host does not see the processes of a cluster. */
  async inspectProcesses(signal: AbortSignal): Promise<null> {
    signal.throwIfAborted();
    return Promise.resolve(null);
  }

  setNetworkPolicy(): Promise<void> {
    return Promise.reject(
      new RolloutError('CAPABILITY_UNSUPPORTED', 'skypilot cannot change a network policy', {
        phase: 'environment',
        remedy: 'Give all phases of the task the same policy, or run it on docker or local.',
      }),
    );
  }

  service(name: string): ServiceAccess {
    if (name !== 'main')
      throw new RolloutError('SERVICE_UNSUPPORTED', `skypilot has no service ${name}`, {
        phase: 'environment',
        remedy: 'Run tasks with side services on docker.',
      });
    return {
      exec: (request, signal) =>
        this.#run(() => runCommand(this.#relay, { ...request, shell: 'sh' }, signal)),
      downloadFile: (from, to, signal, options) => this.downloadFile(from, to, signal, options),
      downloadDir: (from, to, signal, options) => this.downloadDir(from, to, signal, options),
      stop: (signal) => this.stop(signal),
    };
  }

  async stop(signal: AbortSignal): Promise<void> {
    if (!this.#hasStarted || this.#ending.signal.aborted) return;
    this.#ending.abort(stopped());
    await this.#processes.kill({ keys: new Set() }, signal);
  }

  destroy(options: { readonly deadlineMs?: number } = {}): Promise<DestroyReceipt> {
    return this.#removal.run(() => this.#destroy(options.deadlineMs ?? defaultDestroyMs));
  }

  async #destroy(deadlineMs: number): Promise<DestroyReceipt> {
    const began = performance.now();
    this.#starting?.abort(removing());
    const hasBooted = await startIsOver(this.#booting, deadlineMs / 2);
    this.#ending.abort(removing());
    if (this.#booting === null && !this.#hasStarted)
      return { name: this.name, confirmedGone: ['container'], durationMs: 0 };
    const left = deadlineMs - (performance.now() - began);
    const receipt = await removeSandbox(this.#parts.service, this.name, left);
    if (!hasBooted) throw stillCreating(this.name);
    return { ...receipt, durationMs: performance.now() - began };
  }

  async #closeOpened(): Promise<void> {
    const channels = [...this.#channels];
    this.#channels.clear();
    await Promise.all([
      ...channels.map((channel) => channel.close()),
      ...[...this.#opened].map((opened) => opened.kill()),
    ]);
  }

  async #run<T>(work: () => Promise<T>): Promise<T> {
    this.#ending.signal.throwIfAborted();
    if (!this.#hasStarted) throw notStarted();
    return await work();
  }

  async #copy<T>(work: (target: TransferTarget) => Promise<T>): Promise<T> {
    if (this.#removal.hasBegun) throw removing();
    if (!this.#hasStarted) throw notStarted();
    return await work(this.#relay);
  }
}

function lost(message: string): RolloutError {
  return new RolloutError('ENVIRONMENT_LOST', message, { phase: 'environment', retryable: false });
}

function removing(): RolloutError {
  return lost('the sandbox is being removed');
}

function stopped(): RolloutError {
  return lost('the sandbox was stopped');
}

function notStarted(): RolloutError {
  return lost('the sandbox has not been started');
}
