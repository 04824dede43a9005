/** One sandbox of the local environment: the port's methods, each delegated to the part that does it. */
import { attribute, RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { LoopTurns } from '../../core/loop-turns.ts';
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
import { OneRemoval } from '../shared/one-removal.ts';
import { viewProcesses } from '../shared/process-view.ts';
import { bootSandbox } from './boot.ts';
import type { CgroupTree } from './cgroups/cgroup-tree.ts';
import { Transfers } from './files/transfers.ts';
import type { ImageResolver } from './images/image-resolver.ts';
import type { Machine } from './machine.ts';
import type { CompiledLocalOptions } from './options.ts';
import type { HostScan } from './processes/host-scan.ts';
import { defaultDestroyMs, removeSandbox } from './removal.ts';
import type { Sandbox } from './sandbox.ts';
import type { SandboxFolder } from './sandbox-folder.ts';
import type { SharedUnmount } from './shared-unmount.ts';

export interface LocalEnvironmentParts {
  readonly options: CompiledLocalOptions;
  readonly machine: (signal: AbortSignal) => Promise<Machine>;
  /** For removal, whatever preflight found. */
  readonly cgroups: CgroupTree | null;
  readonly images: ImageResolver;
  readonly scan: HostScan;
  readonly turns: LoopTurns;
  readonly mounts: SharedUnmount;
  readonly folder: SandboxFolder;
}

export class LocalEnvironment implements Environment {
  readonly name: string;
  readonly #spec: EnvironmentSpec;
  readonly #parts: LocalEnvironmentParts;
  readonly #transfers: Transfers;
  /** Fires when the sandbox is destroyed, so that a start under way gives up. */
  readonly #ending = new LinkedAbort([]);
  #starting: Promise<StartReport> | null = null;
  #sandbox: Sandbox | null = null;
  readonly #removal = new OneRemoval();

  constructor(spec: EnvironmentSpec, parts: LocalEnvironmentParts) {
    this.name = spec.name;
    this.#spec = spec;
    this.#parts = parts;
    this.#transfers = new Transfers(() => this.#started.rootPath, {
      ownsAsRoot: process.getuid?.() === 0,
    });
  }

  get hostEndpointUrl(): string | null {
    const { hostEndpoint } = this.#spec;
    if (this.#sandbox === null || hostEndpoint === null) return null;
    const { network } = this.#sandbox;
    return network === null
      ? `http://${hostEndpoint.host}:${hostEndpoint.port}`
      : network.endpointUrl;
  }

  start(options: StartOptions): Promise<StartReport> {
    if (this.#starting !== null) throw new Error(`${this.name} is started once`);
    this.#starting = this.#start(options);
    return this.#starting;
  }

  async exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    signal.throwIfAborted();
    this.#started.requireAlive();
    return this.#edge(signal, () => this.#started.commands.exec(request, signal));
  }

  async openControl(options: {
    readonly user?: string | number | null;
    readonly signal: AbortSignal;
  }): Promise<ControlChannel> {
    options.signal.throwIfAborted();
    this.#started.requireAlive();
    return this.#edge(options.signal, () => this.#started.commands.openControl(options));
  }

  async openProcess(request: ProcessRequest, signal: AbortSignal): Promise<InteractiveProcess> {
    signal.throwIfAborted();
    this.#started.requireAlive();
    return this.#edge(signal, () => this.#started.commands.openProcess(request, signal));
  }

  uploadFile(from: string, to: string, signal: AbortSignal): Promise<void> {
    return this.#transfers.uploadFile(from, to, signal);
  }

  uploadDir(from: string, to: string, signal: AbortSignal): Promise<void> {
    return this.#transfers.uploadDir(from, to, signal);
  }

  downloadFile(
    from: string,
    to: string,
    signal: AbortSignal,
    options: DownloadOptions = {},
  ): Promise<void> {
    return this.#transfers.downloadFile(from, to, { ...options, signal });
  }

  downloadDir(
    from: string,
    to: string,
    signal: AbortSignal,
    options: DownloadOptions = {},
  ): Promise<{ readonly skipped: readonly string[] }> {
    return this.#transfers.downloadDir(from, to, { ...options, signal });
  }

  isAlive(signal: AbortSignal): Promise<boolean> {
    return signal.aborted
      ? Promise.reject(signal.reason as Error)
      : Promise.resolve(this.#sandbox?.isAlive ?? false);
  }

  async snapshotProcesses(signal: AbortSignal): Promise<ProcessSnapshot> {
    signal.throwIfAborted();
    this.#started.requireAlive();
    return await this.#started.snapshot();
  }

  async killProcesses(keep: ProcessSnapshot, signal: AbortSignal): Promise<KillReceipt> {
    signal.throwIfAborted();
    return this.#started.kill(keep, signal);
  }

  async inspectProcesses(signal: AbortSignal): Promise<readonly ProcessView[] | null> {
    signal.throwIfAborted();
    const sandbox = !this.#removal.hasBegun ? this.#sandbox : null;
    const rows = sandbox?.isAlive === true ? await sandbox.processes() : null;
    return rows === null ? null : viewProcesses(rows.map(({ pid }) => pid));
  }

  async setNetworkPolicy(policy: NetworkPolicy, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#started.requireAlive();
    const { network } = this.#started;
    if (network !== null) await network.setPolicy(policy, signal);
    else if (policy.mode !== 'public') throw sharesNetwork();
  }

  service(name: string): ServiceAccess {
    if (name === 'main') return this.#mainService();
    throw new RolloutError('SERVICE_UNSUPPORTED', `the local environment has no service ${name}`, {
      phase: 'environment',
      field: 'service',
      remedy: 'Use `--env docker` for tasks with side services.',
    });
  }

  async stop(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    await this.#sandbox?.stop(signal);
  }

  destroy(options: { readonly deadlineMs?: number } = {}): Promise<DestroyReceipt> {
    return this.#removal.run(() => this.#destroy(options.deadlineMs ?? defaultDestroyMs));
  }

  async #start({ signal, onProgress, admitCreate }: StartOptions): Promise<StartReport> {
    using either = new LinkedAbort([signal, this.#ending.signal]);
    return await this.#edge(
      either.signal,
      async () => {
        either.signal.throwIfAborted();
        const spec = this.#spec;
        const { images, folder, scan, turns, options } = this.#parts;
        const machine = await this.#parts.machine(either.signal);
        if (spec.image.kind === 'compose') throw noCompose();
        const begin = performance.now();
        const image = await images.resolve(
          {
            source: spec.image,
            forceBuild: spec.forceBuild,
            extraCaBundle: spec.extraCaBundle ?? options.extraCaBundle,
            onLine: onProgress ?? (() => undefined),
          },
          either.signal,
        );
        const ready = performance.now();
        await admitCreate?.(either.signal);
        const request = { spec, image, folder, machine, scan, turns, options };
        this.#sandbox = await bootSandbox(request, either.signal);
        return { imageMs: ready - begin, bootMs: performance.now() - ready };
      },
      'ENVIRONMENT_START_FAILED',
    );
  }

  async #destroy(deadlineMs: number): Promise<DestroyReceipt> {
    this.#ending.abort(destroyed(this.name));
    await this.#startGivenUp(deadlineMs / 2);
    await this.#sandbox?.release();
    const { cgroups, folder, scan, turns, mounts } = this.#parts;
    const cgroup = cgroups?.group(this.name) ?? null;
    const receipt = await removeSandbox(folder, { cgroup, scan, turns, mounts, deadlineMs });
    this.#sandbox?.abandonCommands();
    cgroups?.removeParent();
    return receipt;
  }

  /** A start gives up at once when it is told to; one that hangs in the system all the same does not hold up the removal. */
  async #startGivenUp(withinMs: number): Promise<void> {
    if (this.#starting === null) return;
    using limit = new LinkedAbort([], { ms: withinMs, reason: () => 'not given up' });
    const { promise, resolve } = Promise.withResolvers<undefined>();
    limit.signal.addEventListener('abort', () => resolve(undefined), { once: true });
    await Promise.race([this.#starting.then(nothing, nothing), promise]);
  }

  get #started(): Sandbox {
    if (this.#sandbox !== null && !this.#removal.hasBegun) return this.#sandbox;
    throw new RolloutError('ENVIRONMENT_LOST', `the sandbox ${this.name} does not exist`, {
      phase: 'environment',
    });
  }

  #mainService(): ServiceAccess {
    return {
      exec: (request, signal) => this.exec(request, signal),
      downloadFile: (...args) => this.downloadFile(...args),
      downloadDir: (...args) => this.downloadDir(...args),
      stop: (signal) => this.stop(signal),
    };
  }

  async #edge<T>(
    signal: AbortSignal,
    work: () => Promise<T>,
    code: 'EXEC_FAILED' | 'ENVIRONMENT_START_FAILED' = 'EXEC_FAILED',
  ): Promise<T> {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      throw attribute(error, code, 'environment', `sandbox ${this.name}`);
    }
  }
}

type StartOptions = Parameters<Environment['start']>[0];

function noCompose(): RolloutError {
  return new RolloutError(
    'CAPABILITY_UNSUPPORTED',
    'the local environment runs one sandbox, not the services of a compose file',
    {
      phase: 'environment',
      field: 'environment/docker-compose.yaml',
      remedy: 'Use `--env docker`.',
    },
  );
}

function sharesNetwork(): RolloutError {
  return new RolloutError(
    'CAPABILITY_UNSUPPORTED',
    'the sandbox shares the network of the host, which cannot be restricted',
    {
      phase: 'environment',
      field: 'environment.network_mode',
      remedy: 'Name the later policies in the spec, so that it gets a network of its own.',
    },
  );
}

function destroyed(name: string): RolloutError {
  return new RolloutError('CANCELLED', `the sandbox ${name} was destroyed while it started`, {
    phase: 'environment',
  });
}

function nothing(): void {
  // only the end counts
}
