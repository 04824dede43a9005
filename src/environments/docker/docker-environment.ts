import { LinkedAbort } from '../../core/linked-abort.ts';
import { RolloutError } from '../../core/errors.ts';
import type { NetworkPolicy } from '../../wire/network-policy.ts';
import type { ProcessView } from '../../wire/rollout/process-view.ts';
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
import { viewProcesses } from '../shared/process-view.ts';
import { openShell, runCommand, type ExecTarget } from './container-exec.ts';
import { openInteractive } from './container-process.ts';
import { downloadDir, downloadFile, uploadDir, uploadFile } from './container-files.ts';
import type { DockerParts } from './docker-parts.ts';
import { containerDetails, type ContainerDetails } from './engine/engine-answers.ts';
import { EngineError, engineFailure } from './engine/engine-error.ts';
import { CgroupControl } from './processes/cgroup-control.ts';
import { cgroupFolder } from './processes/host-processes.ts';
import { NamespaceControl } from './processes/namespace-control.ts';
import type { ProcessControl } from './processes/process-control.ts';
import { defaultDestroyMs, removeSandbox } from './removal.ts';
import type { SandboxBoot } from './sandbox-boot.ts';

/** One sandbox in a Docker engine. The class is the sequence; each stage lives in its own file. */
export class DockerEnvironment implements Environment {
  readonly #spec: EnvironmentSpec;
  readonly #parts: DockerParts;
  readonly #boot: SandboxBoot;
  readonly #channels = new Set<ControlChannel>();
  readonly #opened = new Set<InteractiveProcess>();
  /** Of `start`; null before it. */
  #starting: LinkedAbort | null = null;
  #isStopping = false;
  #booting: Promise<string> | null = null;
  #containerId: string | null = null;
  #processes: ProcessControl | null = null;
  readonly #removal = new OneRemoval();

  constructor(spec: EnvironmentSpec, parts: DockerParts, boot: SandboxBoot) {
    this.#spec = spec;
    this.#parts = parts;
    this.#boot = boot;
  }

  get name(): string {
    return this.#spec.name;
  }

  get hostEndpointUrl(): string | null {
    return this.#boot.hostEndpointUrl;
  }

  async start(options: {
    readonly signal: AbortSignal;
    readonly onProgress?: (line: string) => void;
    readonly admitCreate?: (signal: AbortSignal) => Promise<void>;
  }): Promise<StartReport> {
    const { signal } = options;
    signal.throwIfAborted();
    if (this.#starting !== null || this.#removal.hasBegun)
      throw new RolloutError('INTERNAL', 'a sandbox is started once', { phase: 'environment' });
    using starting = new LinkedAbort([signal]); // also aborted by destroy
    this.#starting = starting;
    const began = performance.now();
    await this.#boot.prepare({
      signal: starting.signal,
      onProgress: options.onProgress ?? (() => undefined),
    });
    const imageReady = performance.now();
    await options.admitCreate?.(starting.signal);
    starting.signal.throwIfAborted();
    this.#booting = this.#boot.boot(starting.signal);
    this.#containerId = await untilAborted(this.#booting, starting.signal);
    await this.#proveUp(starting.signal);
    return { imageMs: imageReady - began, bootMs: performance.now() - imageReady };
  }

  exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    return runCommand(this.#target(), { ...request, shell: 'bash' }, signal);
  }

  async openControl(options: {
    readonly user?: string | number | null;
    readonly signal: AbortSignal;
  }): Promise<ControlChannel> {
    const { signal, user = null } = options;
    const channel = await openShell(this.#target(), { user, signal });
    this.#channels.add(channel);
    return channel;
  }

  async openProcess(request: ProcessRequest, signal: AbortSignal): Promise<InteractiveProcess> {
    const opened = await openInteractive(this.#target(), request, signal);
    this.#opened.add(opened);
    void opened.exited.then(() => this.#opened.delete(opened));
    return opened;
  }

  uploadFile(from: string, to: string, signal: AbortSignal): Promise<void> {
    return uploadFile(this.#target(), from, to, signal);
  }

  uploadDir(from: string, to: string, signal: AbortSignal): Promise<void> {
    return uploadDir(this.#target(), from, to, signal);
  }

  downloadFile(
    from: string,
    to: string,
    signal: AbortSignal,
    options?: DownloadOptions,
  ): Promise<void> {
    return downloadFile(this.#target(), from, to, { ...options, signal });
  }

  downloadDir(
    from: string,
    to: string,
    signal: AbortSignal,
    options?: DownloadOptions,
  ): Promise<{ readonly skipped: readonly string[] }> {
    return downloadDir(this.#target(), from, to, { ...options, signal });
  }

  async isAlive(signal: AbortSignal): Promise<boolean> {
    if (this.#containerId === null) return false;
    try {
      const { State } = await this.#inspect(signal);
      return State.Running && !State.Paused;
    } catch {
      return false;
    }
  }

  async snapshotProcesses(signal: AbortSignal): Promise<ProcessSnapshot> {
    return (await this.#control(signal)).snapshot(signal);
  }

  async killProcesses(keep: ProcessSnapshot, signal: AbortSignal): Promise<KillReceipt> {
    const control = await this.#control(signal);
    // First: a shell that was open at the snapshot is in `keep`, and could start something behind the killing.
    await this.#closeChannels();
    return await control.kill(keep, signal);
  }

  async inspectProcesses(signal: AbortSignal): Promise<readonly ProcessView[] | null> {
    try {
      signal.throwIfAborted();
      const pids = await (await this.#control(signal)).pids();
      return pids === null ? null : viewProcesses(pids);
    } catch {
      signal.throwIfAborted();
      return null;
    }
  }

  setNetworkPolicy(policy: NetworkPolicy, signal: AbortSignal): Promise<void> {
    this.#target();
    return this.#boot.setNetworkPolicy(policy, signal);
  }

  service(name: string): ServiceAccess {
    const target = async (signal: AbortSignal): Promise<ExecTarget> => {
      const main = this.#target();
      if (name === 'main') return main;
      return { ...main, containerId: await this.#boot.serviceContainer(name, signal) };
    };
    return {
      exec: async (request, signal) =>
        runCommand(await target(signal), { ...request, shell: 'sh' }, signal),
      downloadFile: async (from, to, signal, options) =>
        downloadFile(await target(signal), from, to, { ...options, signal }),
      downloadDir: async (from, to, signal, options) =>
        downloadDir(await target(signal), from, to, { ...options, signal }),
      stop: async (signal) => this.#stopContainer((await target(signal)).containerId, signal),
    };
  }

  async stop(signal: AbortSignal): Promise<void> {
    if (this.#containerId === null) return;
    this.#isStopping = true;
    for (const id of await this.#boot.containers(signal)) await this.#stopContainer(id, signal);
    await this.#closeChannels();
  }

  destroy(options: { readonly deadlineMs?: number } = {}): Promise<DestroyReceipt> {
    return this.#removal.run(() => this.#destroy(options.deadlineMs ?? defaultDestroyMs));
  }

  async #destroy(deadlineMs: number): Promise<DestroyReceipt> {
    const began = performance.now();
    this.#starting?.abort(removing());
    const hasBooted = await startIsOver(this.#booting, deadlineMs / 2);
    const left = deadlineMs - (performance.now() - began);
    const receipt = await removeSandbox(this.#parts.engine, this.name, { deadlineMs: left });
    await this.#boot.release();
    this.#processes?.close();
    await this.#closeChannels();
    if (!hasBooted) throw stillCreating(this.name);
    return { ...receipt, durationMs: performance.now() - began };
  }

  /** The sandbox is up when a command has run in it, not when the engine says so. */
  async #proveUp(signal: AbortSignal): Promise<void> {
    try {
      const result = await runCommand(
        this.#target(),
        { command: ':', shell: 'sh', user: 0, cwd: '/', timeoutMs: 60_000 },
        signal,
      );
      if (result.exitCode !== 0) throw new Error(`a shell ended with ${result.exitCode}`);
    } catch (error) {
      signal.throwIfAborted();
      throw new RolloutError(
        'ENVIRONMENT_START_FAILED',
        'the container does not stay up or runs no commands',
        {
          phase: 'environment',
          cause: error,
          retryable: false,
          detail: await this.#logTail(signal),
          remedy:
            'Check that the image has "sh" and that its ENTRYPOINT runs the command it is given.',
        },
      );
    }
  }

  async #control(signal: AbortSignal): Promise<ProcessControl> {
    const target = this.#target();
    if (this.#processes !== null) return this.#processes;
    const { State } = await this.#inspect(signal);
    if (!State.Running)
      throw new RolloutError('ENVIRONMENT_LOST', 'the container does not run', {
        phase: 'agent-stop',
      });
    const { namespaces } = this.#parts;
    const folder =
      process.getuid?.() === 0 ? await cgroupFolder(State.Pid, target.containerId) : null;
    this.#processes =
      folder === null
        ? new NamespaceControl(target, this.#spec.limits.pids)
        : new CgroupControl(target, { folder, initPid: State.Pid, namespaces });
    return this.#processes;
  }

  async #inspect(signal: AbortSignal): Promise<ContainerDetails> {
    const { engine, containerId } = this.#target();
    try {
      const path = `/containers/${containerId}/json`;
      return containerDetails.parse(await engine.json({ method: 'GET', path, signal }));
    } catch (error) {
      signal.throwIfAborted();
      throw engineFailure(error, {
        code: 'ENVIRONMENT_LOST',
        phase: 'environment',
        what: 'looking at the container',
        isRunning: true,
      });
    }
  }

  async #stopContainer(containerId: string, signal: AbortSignal): Promise<void> {
    try {
      await this.#parts.engine.json({
        method: 'POST',
        path: `/containers/${containerId}/stop`,
        query: { t: 1 },
        signal,
      });
    } catch (error) {
      if (error instanceof EngineError && (error.status === 304 || error.status === 404)) return;
      signal.throwIfAborted();
      throw engineFailure(error, {
        code: 'ENVIRONMENT_LOST',
        phase: 'environment',
        what: 'stopping the container',
      });
    }
  }

  async #closeChannels(): Promise<void> {
    const open = [...this.#channels];
    this.#channels.clear();
    await Promise.all([
      ...open.map(async (channel) => channel.close()),
      ...[...this.#opened].map(async (opened) => opened.kill()),
    ]);
  }

  async #logTail(signal: AbortSignal): Promise<string> {
    try {
      const { engine, containerId } = this.#target();
      const answer = await engine.stream({
        method: 'GET',
        path: `/containers/${containerId}/logs`,
        query: { stdout: 1, stderr: 1, tail: 20 },
        signal,
      });
      const chunks: Buffer[] = [];
      for await (const chunk of answer as AsyncIterable<Buffer>) chunks.push(chunk);
      const text = Buffer.concat(chunks).toString('utf8');
      // Each line begins with a frame header of control characters.
      return text.replaceAll(/[^\P{Cc}\n]/gu, '').slice(-4000);
    } catch {
      return '';
    }
  }

  #target(): ExecTarget {
    const containerId = this.#containerId;
    if (this.#removal.hasBegun) throw removing();
    if (containerId === null)
      throw new RolloutError('ENVIRONMENT_LOST', 'the sandbox has not been started', {
        phase: 'environment',
        retryable: false,
      });
    return {
      engine: this.#parts.engine,
      containerId,
      isEnding: () => this.#isStopping || this.#removal.hasBegun,
    };
  }
}

function removing(): RolloutError {
  return new RolloutError('ENVIRONMENT_LOST', 'the sandbox is being removed', {
    phase: 'environment',
    retryable: false,
  });
}

function stillCreating(name: string): RolloutError {
  return new RolloutError(
    'ENVIRONMENT_DESTROY_FAILED',
    `the Docker engine is still at work on creating ${name}`,
    {
      phase: 'cleanup',
      remedy: 'Run "slipway cleanup" once the Docker engine is well again.',
    },
  );
}

/** Waits for work that goes on when the signal fires: only the waiting ends. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  using link = new LinkedAbort([signal]);
  const stopped = Promise.withResolvers<never>();
  const onAbort = (): void => stopped.reject(signal.reason as Error);
  link.signal.addEventListener('abort', onAbort, { once: true });
  if (link.signal.aborted) onAbort();
  try {
    return await Promise.race([work, stopped.promise]);
  } finally {
    link.signal.removeEventListener('abort', onAbort);
  }
}
