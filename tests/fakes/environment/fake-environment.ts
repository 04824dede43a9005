import { RolloutError } from '../../../src/core/errors.ts';
import { LinkedAbort } from '../../../src/core/linked-abort.ts';
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
} from '../../../src/environments/environment.ts';
import type { NetworkPolicy } from '../../../src/wire/network-policy.ts';
import type { ProcessView } from '../../../src/wire/rollout/process-view.ts';
import { FakeChannel } from './fake-channel.ts';
import type { FakeMachine } from './fake-machine.ts';
import { FakeInteractive } from './fake-process.ts';
import type { FakeProcess } from './process-table.ts';
import { lost, type FakeSandbox } from './fake-sandbox.ts';
import { downloadDir, downloadFile, uploadDir, uploadFile } from './fake-transfers.ts';
import type { FaultPoint } from './faults.ts';
import { findUser } from './users.ts';

/** An environment object over a sandbox of a fake machine. The sandbox is looked up at each call, as another process may have removed it. */
export class FakeEnvironment implements Environment {
  readonly name: string;
  readonly #spec: EnvironmentSpec;
  readonly #machine: FakeMachine;
  /** Fires when `destroy` is called. */
  readonly #ended = new AbortController();
  readonly #opened = new Set<InteractiveProcess>();
  #endpointUrl: string | null = null;
  #destroying: Promise<DestroyReceipt> | null = null;

  constructor(spec: EnvironmentSpec, machine: FakeMachine) {
    this.name = spec.name;
    this.#spec = spec;
    this.#machine = machine;
  }

  get hostEndpointUrl(): string | null {
    return this.#endpointUrl;
  }

  async start({
    signal,
    onProgress,
    admitCreate,
  }: {
    readonly signal: AbortSignal;
    readonly onProgress?: (line: string) => void;
    readonly admitCreate?: (signal: AbortSignal) => Promise<void>;
  }): Promise<StartReport> {
    signal.throwIfAborted();
    using link = new LinkedAbort([signal, this.#ended.signal]);
    const { clock } = this.#machine;
    this.#assertSupported();
    await this.#strike('start', this.name, link.signal);
    const startedAt = clock.monotonicMs();
    const image = await this.#machine.image(this.#spec, link.signal);
    onProgress?.('image is ready');
    const imageAt = clock.monotonicMs();
    await admitCreate?.(link.signal);
    const sandbox = await this.#machine.create(this.#spec, image, link.signal);
    await this.#strike('after-create', this.name, link.signal);
    await sandbox.boot();
    link.signal.throwIfAborted();
    this.#endpointUrl = sandbox.network.endpointUrl;
    return { imageMs: imageAt - startedAt, bootMs: clock.monotonicMs() - imageAt };
  }

  async exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    signal.throwIfAborted();
    await this.#strike('exec', request.command, signal);
    return await this.#running().exec(request, signal);
  }

  async openControl({
    user = null,
    signal,
  }: {
    readonly user?: string | number | null;
    readonly signal: AbortSignal;
  }): Promise<ControlChannel> {
    signal.throwIfAborted();
    await this.#strike('exec', 'sh', signal);
    return new FakeChannel(this.#running(), user);
  }

  async openProcess(request: ProcessRequest, signal: AbortSignal): Promise<InteractiveProcess> {
    signal.throwIfAborted();
    await this.#strike('exec', request.command, signal);
    const sandbox = this.#running();
    await findUser(sandbox.files, request.user ?? sandbox.image.user);
    const opened = new FakeInteractive(sandbox, request, signal);
    this.#opened.add(opened);
    void opened.exited.then(() => this.#opened.delete(opened));
    return opened;
  }

  async uploadFile(from: string, to: string, signal: AbortSignal): Promise<void> {
    const sandbox = await this.#forCopy('upload', `${from} ${to}`, signal);
    await sandbox.transfer((files) => uploadFile(files, from, to));
  }

  async uploadDir(from: string, to: string, signal: AbortSignal): Promise<void> {
    const sandbox = await this.#forCopy('upload', `${from} ${to}`, signal);
    await sandbox.transfer((files) => uploadDir(files, from, to));
  }

  async downloadFile(
    from: string,
    to: string,
    signal: AbortSignal,
    options?: DownloadOptions,
  ): Promise<void> {
    const sandbox = await this.#forCopy('download', `${from} ${to}`, signal);
    await sandbox.transfer((files) => downloadFile(files, { from, to }, options));
  }

  async downloadDir(
    from: string,
    to: string,
    signal: AbortSignal,
    options?: DownloadOptions,
  ): Promise<{ readonly skipped: readonly string[] }> {
    const sandbox = await this.#forCopy('download', `${from} ${to}`, signal);
    return await sandbox.transfer((files) => downloadDir(files, { from, to }, options));
  }

  async isAlive(): Promise<boolean> {
    return this.#machine.sandboxes.get(this.name)?.isRunning ?? false;
  }

  async snapshotProcesses(signal: AbortSignal): Promise<ProcessSnapshot> {
    signal.throwIfAborted();
    await this.#strike('snapshot', this.name, signal);
    return {
      keys: new Set(
        this.#running()
          .processes.list()
          .map(({ key }) => key),
      ),
    };
  }

  async inspectProcesses(signal: AbortSignal): Promise<readonly ProcessView[] | null> {
    signal.throwIfAborted();
    const sandbox = this.#machine.sandboxes.get(this.name);
    return await Promise.resolve(sandbox?.processes.list().map(viewOf) ?? null);
  }

  async killProcesses(keep: ProcessSnapshot, signal: AbortSignal): Promise<KillReceipt> {
    signal.throwIfAborted();
    await this.#strike('kill', this.name, signal);
    const startedAt = this.#machine.clock.monotonicMs();
    const { processes } = this.#running();
    await Promise.all([...this.#opened].map((opened) => opened.kill())); // also those in `keep`
    const killed = processes.killAll(keep.keys);
    const durationMs = this.#machine.clock.monotonicMs() - startedAt;
    return { killed, remaining: 0, confirmedBy: ['pid-namespace'], durationMs };
  }

  async setNetworkPolicy(policy: NetworkPolicy, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#assertCapable('dynamicNetworkPolicy');
    this.#running().network.policy = policy;
  }

  service(name: string): ServiceAccess {
    if (name === 'main')
      return {
        exec: (request, signal) => this.exec(request, signal),
        downloadFile: (...copy) => this.downloadFile(...copy),
        downloadDir: (...copy) => this.downloadDir(...copy),
        stop: async () => this.#machine.sandboxes.get(this.name)?.stopMain(),
      };
    const service = this.#machine.sandboxes.get(this.name)?.services.get(name);
    if (service === undefined)
      throw new RolloutError('SERVICE_UNSUPPORTED', `there is no service ${name}`, {
        phase: 'environment',
      });
    return {
      exec: (request, signal) => service.exec({ cwd: '/', ...request }, signal),
      downloadFile: (from, to, _signal, options) =>
        service.transfer((files) => downloadFile(files, { from, to }, options)),
      downloadDir: (from, to, _signal, options) =>
        service.transfer((files) => downloadDir(files, { from, to }, options)),
      stop: async () => service.stop(),
    };
  }

  async stop(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#machine.sandboxes.get(this.name)?.stop();
  }

  destroy({ deadlineMs = 30_000 }: { readonly deadlineMs?: number } = {}): Promise<DestroyReceipt> {
    this.#ended.abort(lost(this.name));
    this.#destroying ??= destroyNow(this.#machine, this.name, deadlineMs).catch(
      (error: unknown) => {
        this.#destroying = null; // a later call tries again
        throw error;
      },
    );
    return this.#destroying;
  }

  #running(): FakeSandbox {
    const sandbox = this.#machine.sandboxes.get(this.name);
    if (sandbox?.isRunning !== true) throw lost(this.name);
    return sandbox;
  }

  /** Files stay reachable after `stop`. */
  async #forCopy(at: 'upload' | 'download', subject: string, signal: AbortSignal) {
    signal.throwIfAborted();
    await this.#strike(at, subject, signal);
    const sandbox = this.#machine.sandboxes.get(this.name);
    if (sandbox === undefined) throw lost(this.name);
    return sandbox;
  }

  async #strike(at: FaultPoint, subject: string, signal: AbortSignal): Promise<void> {
    const lose = (): void => this.#machine.remove(this.name);
    await this.#machine.faults.strike(at, subject, { signal, lose });
  }

  #assertSupported(): void {
    const { image, network, hostEndpoint } = this.#spec;
    if (image.kind === 'compose') this.#assertCapable('compose');
    if (image.kind === 'dockerfile') this.#assertCapable('build');
    if (network.mode === 'no-network') this.#assertCapable('noNetwork');
    if (network.mode === 'allowlist') this.#assertCapable('allowlist');
    if (hostEndpoint !== null) this.#assertCapable('hostEndpoint');
  }

  #assertCapable(capability: keyof FakeMachine['capabilities']): void {
    if (!this.#machine.capabilities[capability])
      throw new RolloutError('CAPABILITY_UNSUPPORTED', `the fake does not declare ${capability}`, {
        phase: 'environment',
      });
  }
}

export async function destroyNow(
  machine: FakeMachine,
  name: string,
  deadlineMs: number,
): Promise<DestroyReceipt> {
  const startedAt = machine.clock.monotonicMs();
  using limit = new LinkedAbort([], {
    ms: deadlineMs,
    reason: () =>
      new RolloutError('ENVIRONMENT_DESTROY_FAILED', `${name} is still there`, {
        phase: 'cleanup',
      }),
  });
  const lose = (): void => machine.remove(name);
  await machine.faults.strike('destroy', name, { signal: limit.signal, lose });
  machine.remove(name);
  const durationMs = machine.clock.monotonicMs() - startedAt;
  return { name, confirmedGone: ['process', 'directory'], durationMs };
}

/** What a program of this name would wait for: nothing really runs here. */
function viewOf({ pid, parent, argv }: FakeProcess): ProcessView {
  const name = (argv[0] ?? 'init').slice(0, 15);
  const isReader = name === 'cat';
  return {
    ...{ pid, parent: parent?.pid ?? 0, name, ageMs: 0, cpuMs: 0 },
    waitsFor: isReader ? 'input' : name === 'sleep' ? 'timer' : 'other',
    input: isReader ? 'pipe' : null,
  };
}
