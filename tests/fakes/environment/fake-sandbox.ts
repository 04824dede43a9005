import { dirname } from 'node:path/posix';
import { attribute, RolloutError } from '../../../src/core/errors.ts';
import type { Clock } from '../../../src/core/clock.ts';
import type {
  EnvironmentSpec,
  ExecRequest,
  ExecResult,
} from '../../../src/environments/environment.ts';
import { caBundle, caFile, caVariables } from '../../../src/environments/shared/extra-ca.ts';
import type { FakeCommand } from './fake-commands.ts';
import type { FakeFiles } from './fake-files.ts';
import type { FakeImage } from './fake-image.ts';
import { FakeNetwork } from './fake-network.ts';
import { runShell } from './fake-shell.ts';
import { uploadDir } from './fake-transfers.ts';
import { ProcessTable, type FakeProcess } from './process-table.ts';
import { findUser } from './users.ts';

export interface SandboxWorld {
  readonly clock: Clock;
  readonly commands: ReadonlyMap<string, FakeCommand>;
}

/** A sandbox as the machine holds it: a file tree, a process table, a network. */
export class FakeSandbox {
  readonly spec: EnvironmentSpec;
  readonly image: FakeImage;
  readonly files: FakeFiles;
  readonly processes = new ProcessTable();
  readonly network: FakeNetwork;
  /** Side services by name. */
  readonly services = new Map<string, FakeSandbox>();
  readonly #world: SandboxWorld;
  #caVariables: Readonly<Record<string, string>> = {};
  #isRunning = true;

  constructor(spec: EnvironmentSpec, image: FakeImage, world: SandboxWorld) {
    this.spec = spec;
    this.image = image;
    this.files = image.files;
    this.network = new FakeNetwork(spec.network, spec.hostEndpoint);
    this.#world = world;
    this.processes.start({ argv: ['init'], parent: null, isInit: true });
  }

  get isRunning(): boolean {
    return this.#isRunning;
  }

  /** What has to be true before the first command: workdir, certificates, the image's entrypoint running. */
  async boot(): Promise<void> {
    const { workdir, extraCaBundle, layers } = this.spec;
    for (const { hostDir, at } of layers) {
      await uploadDir(this.files, hostDir, at);
      this.files.seal(at);
    }
    if (workdir !== null) await this.files.mkdir(workdir, { recursive: true });
    if (extraCaBundle !== null) {
      await this.files.mkdir(dirname(caFile), { recursive: true });
      await this.files.writeFile(caFile, Buffer.from(await caBundle(extraCaBundle)));
      this.#caVariables = caVariables;
    }
    const [entry] = this.image.entrypoint;
    if (entry === undefined) return;
    const process = this.processes.start({ argv: [entry], parent: null, isInit: true });
    const running = this.#run({ command: `${entry} sleep infinity` }, process);
    running.catch(() => undefined); // an entrypoint that fails shows in what it did not do
  }

  async exec(
    request: ExecRequest,
    signal: AbortSignal,
    parent: FakeProcess | null = null,
  ): Promise<ExecResult> {
    signal.throwIfAborted();
    if (!this.#isRunning) throw lost(this.spec.name);
    const argv = ['bash', '-c', request.command];
    const result = await this.#run(request, this.processes.start({ argv, parent }), signal);
    if (!this.isRunning || (parent !== null && isKilled(parent))) throw lost(this.spec.name);
    return result;
  }

  /** Runs a copy; a disk that is full is told as DISK_FULL. */
  async transfer<T>(work: (files: FakeFiles) => Promise<T>): Promise<T> {
    try {
      return await work(this.files);
    } catch (error) {
      throw attribute(error, 'TRANSFER_FAILED', 'environment', `copy with ${this.spec.name}`);
    }
  }

  /** The sandbox itself; its services run on. */
  stopMain(): void {
    this.#isRunning = false;
    this.processes.clear();
  }

  stop(): void {
    this.stopMain();
    for (const service of this.services.values()) service.stop();
  }

  async #run(
    request: ExecRequest,
    process: FakeProcess,
    signal: AbortSignal = process.killed,
  ): Promise<ExecResult> {
    const { spec, image, files, processes, network } = this;
    try {
      const user = await findUser(files, request.user ?? image.user);
      this.#showProcesses();
      const world = {
        sandbox: spec.name,
        files,
        processes,
        network,
        user,
        process,
        clock: this.#world.clock,
        limits: spec.limits,
        cpus: spec.limits.cpus,
        scripted: this.#world.commands,
      };
      const env = { ...image.env, ...this.#caVariables, ...spec.env, ...request.env };
      const cwd = request.cwd ?? spec.workdir ?? image.workdir;
      return await runShell(world, { request, cwd, env }, signal);
    } finally {
      processes.end(process);
    }
  }

  /** Command lines as `/proc` shows them at the start of a command. */
  #showProcesses(): void {
    for (const { pid, argv } of this.processes.list()) {
      this.files.mkdirSync(`/proc/${pid}`, { recursive: true });
      this.files.writeFileSync(`/proc/${pid}/cmdline`, `${argv.join('\0')}\0`);
    }
  }
}

export function lost(name: string): RolloutError {
  return new RolloutError('ENVIRONMENT_LOST', `sandbox ${name} does not run any more`, {
    phase: 'environment',
  });
}

function isKilled(process: FakeProcess): boolean {
  return process.killed.aborted;
}
