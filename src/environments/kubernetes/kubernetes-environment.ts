import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { raceSignal } from '../../core/race-signal.ts';
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
import { caBundle, caFile } from '../shared/extra-ca.ts';
import type { Attach } from '../shared/inside/attached-program.ts';
import { InsideCommands } from '../shared/inside/inside-commands.ts';
import { InsideFiles } from '../shared/inside/inside-files.ts';
import { InsideProcesses } from '../shared/inside/inside-processes.ts';
import { shellQuote } from '../shared/shell-quote.ts';
import { apiFailure } from './api/api-error.ts';
import { attachExec } from './api/exec-stream.ts';
import type { KubernetesParts } from './kubernetes-parts.ts';
import { policyManifest, refuseHostNames } from './network/policy-manifest.ts';
import { container, podName } from './pods/names.ts';
import { PodBoot } from './pods/pod-boot.ts';
import { isUp, type Pod } from './pods/pod-status.ts';
import { defaultDestroyMs, podPath, policiesPath, readPod, removeSandbox } from './removal.ts';

const proveMs = 60_000;
const lookMs = 10_000;

/** One sandbox as a pod. The class is the sequence; each stage lives in its own file. */
export class KubernetesEnvironment implements Environment {
  readonly hostEndpointUrl = null;
  readonly #spec: EnvironmentSpec;
  readonly #parts: KubernetesParts;
  readonly #boot: PodBoot;
  readonly #commands: InsideCommands;
  readonly #files: InsideFiles;
  readonly #processes: InsideProcesses;
  /** Of `start`; null before it. */
  #starting: LinkedAbort | null = null;
  #creating: Promise<Pod> | null = null;
  #state: 'new' | 'up' | 'stopped' = 'new';
  #endsInput = true;
  readonly #removal = new OneRemoval();

  constructor(spec: EnvironmentSpec, parts: KubernetesParts) {
    this.#spec = spec;
    this.#parts = parts;
    this.#boot = new PodBoot(spec, parts);
    const attach: Attach = (request, signal) => this.#attach(request, signal);
    const endsInput = (): boolean => this.#endsInput;
    const failure = (code: 'EXEC_FAILED' | 'TRANSFER_FAILED') => (error: unknown, what: string) =>
      apiFailure(error, { code, phase: 'environment', what, isRunning: true });
    this.#commands = new InsideCommands({
      attach,
      endsInput,
      workdir: spec.workdir,
      isAlive: () => this.#isThere(),
      isEnding: () => this.#removal.hasBegun || this.#state === 'stopped',
      failure: failure('EXEC_FAILED'),
    });
    this.#files = new InsideFiles({ attach, endsInput, failure: failure('TRANSFER_FAILED') });
    this.#processes = new InsideProcesses(attach);
  }

  get name(): string {
    return this.#spec.name;
  }

  async start(options: {
    readonly signal: AbortSignal;
    readonly onProgress?: (line: string) => void;
    readonly admitCreate?: (signal: AbortSignal) => Promise<void>;
  }): Promise<StartReport> {
    options.signal.throwIfAborted();
    if (this.#starting !== null || this.#removal.hasBegun)
      throw new RolloutError('INTERNAL', 'a sandbox is started once', { phase: 'environment' });
    const { startTimeoutMs } = this.#parts.options;
    using starting = new LinkedAbort([options.signal], {
      ms: startTimeoutMs,
      reason: () => notUp(this.name, startTimeoutMs),
    }); // also aborted by destroy
    this.#starting = starting;
    const { signal } = starting;
    const reference = this.#reference();
    for (const policy of [this.#spec.network, ...this.#spec.laterNetworks]) refuseHostNames(policy);
    const began = performance.now();
    const admit = options.admitCreate ?? (() => Promise.resolve());
    await admit(signal);
    signal.throwIfAborted();
    this.#creating = this.#boot.create(reference, { abandoned: signal, admit });
    const pod = await raceSignal(this.#creating, signal);
    const onProgress = options.onProgress ?? (() => undefined);
    await this.#boot.untilUp(pod, reference, { signal, onProgress });
    this.#state = 'up';
    await this.#prepare(signal);
    await this.#proveCutOff(signal);
    // The cluster pulls images as part of bringing a pod up, and does not say how long that took.
    return { imageMs: 0, bootMs: performance.now() - began };
  }

  async exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    signal.throwIfAborted();
    this.#requireUp();
    return await this.#commands.exec(request, signal);
  }

  async openControl(options: {
    readonly user?: string | number | null;
    readonly signal: AbortSignal;
  }): Promise<ControlChannel> {
    options.signal.throwIfAborted();
    this.#requireUp();
    return await this.#commands.openControl(options);
  }

  async openProcess(request: ProcessRequest, signal: AbortSignal): Promise<InteractiveProcess> {
    signal.throwIfAborted();
    this.#requireUp();
    return await this.#commands.openProcess(request, signal);
  }

  uploadFile(from: string, to: string, signal: AbortSignal): Promise<void> {
    return this.#files.uploadFile(from, to, signal);
  }

  uploadDir(from: string, to: string, signal: AbortSignal): Promise<void> {
    return this.#files.uploadDir(from, to, signal);
  }

  downloadFile(
    from: string,
    to: string,
    signal: AbortSignal,
    options?: DownloadOptions,
  ): Promise<void> {
    return this.#files.downloadFile(from, to, signal, options);
  }

  downloadDir(
    from: string,
    to: string,
    signal: AbortSignal,
    options?: DownloadOptions,
  ): Promise<{ readonly skipped: readonly string[] }> {
    return this.#files.downloadDir(from, to, signal, options);
  }

  async isAlive(signal: AbortSignal): Promise<boolean> {
    if (this.#state !== 'up' || this.#removal.hasBegun) return false;
    return await raceSignal(this.#isThere(), signal).catch(() => false);
  }

  async snapshotProcesses(signal: AbortSignal): Promise<ProcessSnapshot> {
    signal.throwIfAborted();
    this.#requireUp();
    return await this.#edge(signal, () => this.#processes.snapshot(signal));
  }

  async killProcesses(keep: ProcessSnapshot, signal: AbortSignal): Promise<KillReceipt> {
    signal.throwIfAborted();
    this.#requireUp();
    // First: a shell that was open at the snapshot is in `keep`, and could start something behind the killing.
    await this.#commands.closeAll();
    return await this.#edge(signal, () => this.#processes.kill(keep, signal));
  }

  /** What a process waits for is seen by its node alone. */
  inspectProcesses(signal: AbortSignal): Promise<readonly ProcessView[] | null> {
    return signal.aborted ? Promise.reject(signal.reason as Error) : Promise.resolve(null);
  }

  async setNetworkPolicy(policy: NetworkPolicy, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    this.#requireUp();
    refuseHostNames(policy);
    const { client, options } = this.#parts;
    if (!options.networkPolicies) throw noPolicies();
    const place = `${policiesPath(client)}/${podName(this.name)}`;
    const body = policyManifest(this.#spec, policy);
    await this.#edge(signal, () => client.json({ method: 'PUT', path: place, body, signal }));
  }

  service(name: string): ServiceAccess {
    if (name !== 'main')
      throw new RolloutError('SERVICE_UNSUPPORTED', `a pod has no side service "${name}"`, {
        phase: 'environment',
        field: 'service',
        remedy: 'Use `--env docker` for tasks with side services.',
      });
    return {
      exec: async (request, signal) => {
        this.#requireUp();
        return await this.#commands.run(request, 'sh', signal);
      },
      downloadFile: (...args) => this.downloadFile(...args),
      downloadDir: (...args) => this.downloadDir(...args),
      stop: (signal) => this.stop(signal),
    };
  }

  /** A pod that has ended has no files any more: its processes are killed, and it stays up for downloads. */
  async stop(signal: AbortSignal): Promise<void> {
    if (this.#state !== 'up' || this.#removal.hasBegun) return;
    await this.killProcesses({ keys: new Set() }, signal);
    this.#state = 'stopped';
  }

  destroy(options: { readonly deadlineMs?: number } = {}): Promise<DestroyReceipt> {
    return this.#removal.run(() => this.#destroy(options.deadlineMs ?? defaultDestroyMs));
  }

  async #destroy(deadlineMs: number): Promise<DestroyReceipt> {
    const began = performance.now();
    this.#starting?.abort(removing());
    const isCreated = await startIsOver(this.#creating, deadlineMs / 2);
    const left = deadlineMs - (performance.now() - began);
    const receipt = await removeSandbox(this.#parts, this.name, { deadlineMs: left });
    this.#processes.close();
    await this.#commands.closeAll();
    if (!isCreated) throw stillCreating(this.name);
    return { ...receipt, durationMs: performance.now() - began };
  }

  /** The sandbox is up when a command has run in it, not when the cluster says so. */
  async #prepare(signal: AbortSignal): Promise<void> {
    try {
      const { workdir } = this.#spec;
      const command = workdir === null ? ':' : `mkdir -p -- ${shellQuote(workdir)}`;
      const request = { command, cwd: '/', timeoutMs: proveMs };
      const result = await this.#commands.run(request, 'sh', signal);
      if (result.exitCode !== 0)
        throw new Error(`a shell ended with ${result.exitCode}: ${result.stderr}`);
      await this.#bringCertificates(signal);
    } catch (error) {
      signal.throwIfAborted();
      throw new RolloutError('ENVIRONMENT_START_FAILED', 'the pod is up but runs no commands', {
        phase: 'environment',
        cause: error,
        detail: messageOf(error),
        remedy: 'Check that the image has "sh", and that the cluster streams commands.',
      });
    }
  }

  async #proveCutOff(signal: AbortSignal): Promise<void> {
    const { enforcement, options } = this.#parts;
    if (!options.networkPolicies || this.#spec.network.mode !== 'no-network') return;
    await enforcement.prove(async (command) => {
      const request = { command, cwd: '/', timeoutMs: proveMs };
      return (await this.#commands.run(request, 'sh', signal)).exitCode;
    }, signal);
  }

  async #bringCertificates(signal: AbortSignal): Promise<void> {
    const file = this.#spec.extraCaBundle ?? this.#parts.options.extraCaBundle;
    if (file === null) return;
    const folder = await mkdtemp(path.join(tmpdir(), 'slipway-ca-'));
    try {
      const bundle = path.join(folder, 'bundle');
      await writeFile(bundle, await caBundle(file), { mode: 0o644 });
      await this.#files.uploadFile(bundle, caFile, signal);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async #attach(...[request, signal]: Parameters<Attach>): ReturnType<Attach> {
    const { client } = this.#parts;
    const { namespace } = client.access;
    const pod = podName(this.name);
    const stream = await attachExec({ client, namespace, pod, container }, request, signal);
    this.#endsInput = stream.endsInput;
    return stream;
  }

  /** Whether the pod runs and is not being removed. Never rejects. */
  async #isThere(): Promise<boolean> {
    using limit = new LinkedAbort([], { ms: lookMs, reason: () => new Error('no answer') });
    try {
      const place = podPath(this.#parts.client, this.name);
      const pod = await readPod(this.#parts.client, place, limit.signal);
      return pod !== null && isUp(pod);
    } catch {
      return false;
    }
  }

  #reference(): string {
    const { image } = this.#spec;
    if (image.kind === 'prebuilt') return image.reference;
    throw new RolloutError(
      'CAPABILITY_UNSUPPORTED',
      `a cluster runs images of a registry; this task has a ${image.kind === 'compose' ? 'compose file' : 'Dockerfile'}`,
      {
        phase: 'environment',
        field:
          image.kind === 'compose' ? 'environment/docker-compose.yaml' : 'environment/Dockerfile',
        remedy: 'Push its image and name it in environment.docker_image.',
      },
    );
  }

  #requireUp(): void {
    if (this.#removal.hasBegun) throw removing();
    if (this.#state === 'up') return;
    const why = this.#state === 'new' ? 'has not been started' : 'was stopped';
    throw new RolloutError('ENVIRONMENT_LOST', `the sandbox ${this.name} ${why}`, {
      phase: 'environment',
      retryable: false,
    });
  }

  async #edge<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      const of = { code: 'EXEC_FAILED', phase: 'environment', isRunning: true } as const;
      throw apiFailure(error, { ...of, what: `sandbox ${this.name}` });
    }
  }
}

function removing(): RolloutError {
  return new RolloutError('ENVIRONMENT_LOST', 'the sandbox is being removed', {
    phase: 'environment',
    retryable: false,
  });
}

function notUp(name: string, ms: number): RolloutError {
  return new RolloutError(
    'ENVIRONMENT_START_TIMEOUT',
    `the pod ${podName(name)} was not up within ${ms / 1000} s`,
    {
      phase: 'environment',
      field: 'environment.kwargs.start_timeout_ms',
      remedy: 'Look at the events of the namespace: no node may have room, or the image is large.',
    },
  );
}

function stillCreating(name: string): RolloutError {
  return new RolloutError(
    'ENVIRONMENT_DESTROY_FAILED',
    `the API server is still at work on creating ${podName(name)}`,
    { phase: 'cleanup', remedy: 'Run "slipway cleanup" once the cluster is well again.' },
  );
}

function noPolicies(): RolloutError {
  return new RolloutError('CAPABILITY_UNSUPPORTED', 'network policies are switched off', {
    phase: 'environment',
    field: 'environment.kwargs.network_policies',
    remedy: 'Set network_policies to true, in a cluster that enforces them.',
  });
}
