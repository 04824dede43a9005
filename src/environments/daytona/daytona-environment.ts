import { LinkedAbort } from '../../core/linked-abort.ts';
import { RolloutError } from '../../core/errors.ts';
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
import { InsideCommands } from '../shared/inside/inside-commands.ts';
import { shellQuote } from '../shared/shell-quote.ts';
import { apiFailure } from './api/api-error.ts';
import { sandboxAnswer } from './api/answers.ts';
import { downloadDir, downloadFile, uploadDir, uploadFile } from './files.ts';
import type { DaytonaImages } from './images/snapshots.ts';
import { networkSettings } from './network-settings.ts';
import { DaytonaProcesses } from './processes.ts';
import { defaultDestroyMs, removeSandbox } from './removal.ts';
import { bootSandbox, type BootedSandbox, type BootParts } from './sandbox-boot.ts';
import { sessionAttach } from './sessions/session-attach.ts';
import { SessionPool } from './sessions/session-pool.ts';
import { Toolbox } from './sessions/toolbox.ts';

export interface DaytonaParts extends BootParts {
  readonly images: DaytonaImages;
}

/** What there is once the sandbox runs. */
interface Running {
  readonly sandbox: BootedSandbox;
  readonly toolbox: Toolbox;
  readonly pool: SessionPool;
  readonly commands: InsideCommands;
  readonly processes: DaytonaProcesses;
  /** Who commands run as when nobody says; null = the sandbox's own user. */
  readonly user: string | null;
}

const upLimitMs = 60_000;
const aliveLimitMs = 15_000;
/** Our own sessions need a moment to be told from an agent's processes. */
const settleMs = 500;

/** One sandbox of Daytona. The class is the sequence; each stage lives in its own file. */
export class DaytonaEnvironment implements Environment {
  readonly hostEndpointUrl = null;
  readonly #spec: EnvironmentSpec;
  readonly #parts: DaytonaParts;
  /** Of `start`; null before it. */
  #starting: LinkedAbort | null = null;
  #booting: Promise<BootedSandbox> | null = null;
  #running: Running | null = null;
  #isStopped = false;
  readonly #removal = new OneRemoval();

  constructor(spec: EnvironmentSpec, parts: DaytonaParts) {
    this.#spec = spec;
    this.#parts = parts;
  }

  get name(): string {
    return this.#spec.name;
  }

  async start(options: {
    readonly signal: AbortSignal;
    readonly onProgress?: (line: string) => void;
    readonly admitCreate?: (signal: AbortSignal) => Promise<void>;
  }): Promise<StartReport> {
    const { signal, onProgress = () => undefined } = options;
    const admitCreate = options.admitCreate ?? (() => Promise.resolve());
    signal.throwIfAborted();
    if (this.#starting !== null || this.#removal.hasBegun)
      throw new RolloutError('INTERNAL', 'a sandbox is started once', { phase: 'environment' });
    using starting = new LinkedAbort([signal]); // also aborted by destroy
    this.#starting = starting;
    const began = performance.now();
    const { image: source, limits, forceBuild } = this.#spec;
    const image = await this.#parts.images.prepare({
      ...{ image: source, limits, forceBuild, signal: starting.signal, onProgress },
    });
    const imageReady = performance.now();
    await admitCreate(starting.signal);
    starting.signal.throwIfAborted();
    const caPath = this.#spec.extraCaBundle ?? this.#parts.options.extraCaBundle;
    const wanted = { spec: this.#spec, image, hasCa: caPath !== null, admitCreate };
    this.#booting = bootSandbox(this.#parts, wanted, starting.signal);
    const sandbox = await raceSignal(this.#booting, starting.signal);
    const running = this.#open(sandbox, image.user);
    await this.#makeReady(running, { caPath, signal: starting.signal });
    starting.signal.throwIfAborted();
    this.#running = running;
    return { imageMs: imageReady - began, bootMs: performance.now() - imageReady };
  }

  exec(request: ExecRequest, signal: AbortSignal): Promise<ExecResult> {
    return this.#asUser(request, (commands, asked) => commands.exec(asked, signal));
  }

  openControl(options: {
    readonly user?: string | number | null;
    readonly signal: AbortSignal;
  }): Promise<ControlChannel> {
    return this.#asUser(options, (commands, asked) => commands.openControl(asked));
  }

  openProcess(request: ProcessRequest, signal: AbortSignal): Promise<InteractiveProcess> {
    return this.#asUser(request, (commands, asked) => commands.openProcess(asked, signal));
  }

  async uploadFile(from: string, to: string, signal: AbortSignal): Promise<void> {
    await uploadFile(this.#target().toolbox, from, to, signal);
  }

  async uploadDir(from: string, to: string, signal: AbortSignal): Promise<void> {
    await uploadDir(this.#target().toolbox, from, to, signal);
  }

  async downloadFile(
    from: string,
    to: string,
    signal: AbortSignal,
    options?: DownloadOptions,
  ): Promise<void> {
    await downloadFile(this.#target().toolbox, from, to, { ...options, signal });
  }

  async downloadDir(
    from: string,
    to: string,
    signal: AbortSignal,
    options?: DownloadOptions,
  ): Promise<{ readonly skipped: readonly string[] }> {
    return await downloadDir(this.#target().toolbox, from, to, { ...options, signal });
  }

  async isAlive(signal: AbortSignal): Promise<boolean> {
    if (this.#running === null || this.#isStopped || this.#removal.hasBegun) return false;
    try {
      const url = `/sandbox/${this.#running.sandbox.id}`;
      const answer = await this.#parts.api.json({ method: 'GET', url, signal });
      return sandboxAnswer.parse(answer).state === 'started';
    } catch {
      return false;
    }
  }

  async snapshotProcesses(signal: AbortSignal): Promise<ProcessSnapshot> {
    const { processes } = this.#live();
    return await this.#looking(signal, () => processes.snapshot(signal));
  }

  async killProcesses(keep: ProcessSnapshot, signal: AbortSignal): Promise<KillReceipt> {
    const { commands, processes, pool } = this.#live();
    // First: a shell that was open at the snapshot is in `keep`, and could start something behind the killing.
    await commands.closeAll();
    await pool.settle(settleMs, signal);
    return await this.#looking(signal, () => processes.kill(keep, { shells: pool.shells, signal }));
  }

  /** What waits for what is told by the host's kernel, which is the provider's. */
  inspectProcesses(signal: AbortSignal): Promise<readonly ProcessView[] | null> {
    signal.throwIfAborted();
    return Promise.resolve(null);
  }

  async setNetworkPolicy(policy: NetworkPolicy, signal: AbortSignal): Promise<void> {
    const { sandbox } = this.#live();
    const json = networkSettings(policy);
    const url = `/sandbox/${sandbox.id}/network-settings`;
    await this.#looking(signal, () =>
      this.#parts.api.json({ method: 'POST', url, json, signal, isIdempotent: true }),
    );
  }

  service(name: string): ServiceAccess {
    const unsupported = (): never => {
      throw new RolloutError('SERVICE_UNSUPPORTED', `this sandbox has no side service "${name}"`, {
        phase: 'environment',
        remedy:
          'Side services come from a docker-compose.yaml beside the Dockerfile: use --env docker.',
      });
    };
    const main = async <T>(work: () => Promise<T>): Promise<T> =>
      name === 'main' ? await work() : unsupported();
    return {
      exec: (request, signal) =>
        main(() => this.#live().commands.run({ cwd: '/', user: 0, ...request }, 'sh', signal)),
      downloadFile: (from, to, signal, options) =>
        main(() => this.downloadFile(from, to, signal, options)),
      downloadDir: (from, to, signal, options) =>
        main(() => this.downloadDir(from, to, signal, options)),
      stop: (signal) => main(() => this.stop(signal)),
    };
  }

  /** The sandbox itself goes on, without a program of the task: the daemon is what hands out its files. */
  async stop(signal: AbortSignal): Promise<void> {
    if (this.#running === null || this.#isStopped) return;
    this.#isStopped = true;
    const { commands, processes, pool } = this.#running;
    await commands.closeAll();
    const nothing = { keys: new Set<string>() };
    await this.#looking(signal, () => processes.kill(nothing, { shells: pool.shells, signal }));
  }

  destroy(options: { readonly deadlineMs?: number } = {}): Promise<DestroyReceipt> {
    return this.#removal.run(() => this.#destroy(options.deadlineMs ?? defaultDestroyMs));
  }

  async #destroy(deadlineMs: number): Promise<DestroyReceipt> {
    const began = performance.now();
    this.#starting?.abort(removing());
    const hasBooted = await startIsOver(this.#booting, deadlineMs / 2);
    const left = deadlineMs - (performance.now() - began);
    const receipt = await removeSandbox(this.#parts, this.name, { deadlineMs: left });
    await this.#running?.commands.closeAll();
    if (!hasBooted) throw stillCreating(this.name);
    return { ...receipt, durationMs: performance.now() - began };
  }

  #open(sandbox: BootedSandbox, user: string | null): Running {
    const { api, options, ports } = this.#parts;
    const toolbox = new Toolbox(api, sandbox.toolboxUrl);
    const pool = new SessionPool(toolbox);
    const { silenceMs } = options;
    const commands = new InsideCommands({
      attach: sessionAttach({ toolbox, pool, clock: ports.clock, silenceMs }),
      endsInput: () => true,
      workdir: this.#spec.workdir,
      isAlive: () => this.isAlive(AbortSignal.timeout(aliveLimitMs)),
      isEnding: () => this.#isStopped || this.#removal.hasBegun,
      failure: (error, what) =>
        apiFailure(error, { code: 'EXEC_FAILED', phase: 'environment', what, isRunning: true }),
    });
    return { sandbox, toolbox, pool, commands, processes: new DaytonaProcesses(toolbox), user };
  }

  /** The sandbox is up when a script has run in it as root, not when the service says so. */
  async #makeReady(
    { toolbox, processes }: Running,
    { caPath, signal }: { readonly caPath: string | null; readonly signal: AbortSignal },
  ): Promise<void> {
    const { workdir } = this.#spec;
    try {
      const folder = workdir === null ? ':' : `mkdir -p -- ${shellQuote(workdir)}`;
      const options = { signal, limitMs: upLimitMs, isIdempotent: true };
      const { exitCode, output } = await toolbox.execute(folder, options);
      if (exitCode !== 0)
        throw new Error(`a shell ended with ${exitCode}: ${output.slice(0, 500)}`);
      if (caPath !== null) {
        const bundle = Buffer.from(await caBundle(caPath));
        await toolbox.upload(caFile, { body: () => bundle, signal });
      }
      await processes.remember(signal);
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof RolloutError && error.code === 'CONFIG_INVALID') throw error;
      throw new RolloutError('ENVIRONMENT_START_FAILED', 'the sandbox runs no commands', {
        phase: 'environment',
        cause: error,
        remedy: 'Check that the image has "sh" and a /proc, and what the service shows as its log.',
      });
    }
  }

  async #asUser<Request extends { readonly user?: string | number | null }, T>(
    request: Request,
    work: (commands: InsideCommands, asked: Request) => Promise<T>,
  ): Promise<T> {
    const { commands, user } = this.#live();
    return await work(commands, { ...request, user: request.user ?? user });
  }

  async #looking<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      signal.throwIfAborted();
      throw apiFailure(error, {
        code: 'EXEC_FAILED',
        phase: 'environment',
        what: 'looking into the sandbox',
        isRunning: true,
      });
    }
  }

  /** For what needs programs of the task to be allowed to run. */
  #live(): Running {
    const running = this.#target();
    if (this.#isStopped) throw lost('the sandbox has been stopped');
    return running;
  }

  #target(): Running {
    if (this.#removal.hasBegun) throw removing();
    if (this.#running === null) throw lost('the sandbox has not been started');
    return this.#running;
  }
}

function lost(message: string): RolloutError {
  return new RolloutError('ENVIRONMENT_LOST', message, { phase: 'environment', retryable: false });
}

function removing(): RolloutError {
  return lost('the sandbox is being removed');
}

function stillCreating(name: string): RolloutError {
  return new RolloutError(
    'ENVIRONMENT_DESTROY_FAILED',
    `Daytona is still at work on creating ${name}`,
    {
      phase: 'cleanup',
      remedy:
        'Run "slipway cleanup --env daytona" later; at its expiry the service removes it itself.',
    },
  );
}
