/**
 * A stateful fake of the SkyPilot platform's sandboxes, behind the fake SDK in `sdk/`. It keeps what a platform keeps: names that are taken, pools,
 * secrets, lifetimes, commands with their time-out and their output until somebody reads it; quotas, slowness and faults are the host's.
 */
import { randomUUID } from 'node:crypto';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { isRolloutError, messageOf } from '../../../src/core/errors.ts';
import { LinkedAbort, never } from '../../../src/core/linked-abort.ts';
import type { ImageSource, InteractiveProcess } from '../../../src/environments/environment.ts';
import type { HostedSandbox } from '../sandbox-host/hosted-sandbox.ts';
import type { SandboxHost } from '../sandbox-host/sandbox-host.ts';

export interface CreateAsked {
  readonly name: string;
  readonly image: string | null;
  readonly pool: string | null;
  readonly cpus: number | null;
  readonly memory_gb: number | null;
  readonly registry: string | null;
  readonly context_name: string | null;
  readonly namespace: string | null;
  readonly env: Readonly<Record<string, string>> | null;
  readonly secrets: readonly string[] | null;
  readonly block_network: boolean;
  readonly timeout: number | null;
}

export interface ExecAsked {
  readonly argv: readonly string[];
  readonly workdir: string | null;
  readonly env: Readonly<Record<string, string>> | null;
  readonly timeout_seconds: number;
}

export interface PlatformOptions {
  readonly host: SandboxHost;
  readonly pools?: Readonly<
    Record<string, { readonly image: string; readonly cpus?: number; readonly memoryMb?: number }>
  >;
  readonly secrets?: Readonly<Record<string, string>>;
  /** What the cluster pulls for a reference; default: the reference as it is. */
  readonly pull?: (reference: string) => Promise<ImageSource>;
  /** What a light sandbox answers to `printenv NAME` comes from here, as it has no processes of its own. */
  readonly isLight?: boolean;
}

/** An answer other than success. */
export class Refusal extends Error {
  readonly status: number;
  readonly retryAfterSec: number | null;

  constructor(status: number, message: string, retryAfterSec: number | null = null) {
    super(message);
    this.status = status;
    this.retryAfterSec = retryAfterSec;
  }
}

interface Running {
  readonly program: InteractiveProcess;
  readonly output: { readonly stdout: Buffer[]; readonly stderr: Buffer[] };
  readonly ended: Promise<number>;
}

interface Sandbox {
  readonly asked: CreateAsked;
  hosted: HostedSandbox | null;
  readonly env: Readonly<Record<string, string>>;
  status: 'PENDING' | 'RUNNING' | 'FAILED';
  error: string | null;
  readonly execs: Map<string, Running>;
  readonly ending: LinkedAbort;
}

/** What `timeout` of GNU answers for a command that it killed. */
const overrunCode = 124;

export class SkyPlatform implements AsyncDisposable {
  readonly host: SandboxHost;
  /** Every creation that was asked for, in order. */
  readonly asked: CreateAsked[] = [];
  readonly #options: PlatformOptions;
  readonly #sandboxes = new Map<string, Sandbox>();

  constructor(options: PlatformOptions) {
    this.#options = options;
    this.host = options.host;
  }

  list(): readonly object[] {
    return [...this.#sandboxes.values()].map(recordOf);
  }

  /** Answers when the sandbox runs or has failed. */
  async create(asked: CreateAsked): Promise<object> {
    this.asked.push(asked);
    if (!/^[a-z0-9]([a-z0-9-]{0,51}[a-z0-9])?$/.test(asked.name))
      throw new Refusal(400, `${asked.name} is no name of a sandbox`);
    if (this.#sandboxes.has(asked.name)) throw new Refusal(409, `${asked.name} exists`);
    const sandbox: Sandbox = {
      asked,
      hosted: null,
      env: { ...asked.env, ...this.#secretsOf(asked) },
      status: 'PENDING',
      error: null,
      execs: new Map(),
      ending: new LinkedAbort([]),
    };
    const shape = this.#shapeOf(asked);
    this.#sandboxes.set(asked.name, sandbox);
    try {
      const image = await this.#image(shape.image);
      sandbox.hosted = this.host.create({
        image,
        env: sandbox.env,
        cpus: shape.cpus,
        memoryMb: shape.memoryMb,
        egress: asked.block_network ? 'none' : 'all',
      });
    } catch (error) {
      this.#sandboxes.delete(asked.name);
      throw error;
    }
    try {
      await sandbox.hosted.ready;
      sandbox.status = 'RUNNING';
      if (asked.timeout !== null) void this.#expire(sandbox, asked.timeout * 1000);
    } catch (error) {
      sandbox.status = 'FAILED';
      sandbox.error = isRolloutError(error, 'IMAGE_NOT_FOUND')
        ? `ErrImagePull: ${error.message}`
        : messageOf(error);
    }
    return recordOf(sandbox);
  }

  async remove(name: string): Promise<void> {
    const sandbox = this.#sandboxes.get(name);
    if (sandbox === undefined) throw new Refusal(404, `no sandbox ${name}`);
    sandbox.ending.abort(new Error('terminated'));
    await sandbox.hosted?.remove();
    if (this.#sandboxes.get(name) === sandbox) this.#sandboxes.delete(name);
  }

  async exec(name: string, asked: ExecAsked): Promise<string> {
    const sandbox = this.#running(name);
    if (asked.timeout_seconds > 3600) throw new Refusal(400, 'a command takes an hour at most');
    const output = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
    const id = randomUUID();
    if (this.#options.isLight === true && asked.argv[0] === 'printenv') {
      output.stdout.push(Buffer.from(`${sandbox.env[asked.argv[1] ?? ''] ?? ''}\n`));
      sandbox.execs.set(id, { program: nothing, output, ended: Promise.resolve(0) });
      return id;
    }
    const program = await this.#hosted(sandbox).run({
      argv: asked.argv,
      cwd: asked.workdir,
      env: asked.env ?? {},
      onOutput: (stream, bytes) => output[stream].push(Buffer.from(bytes)),
    });
    program.endInput();
    sandbox.execs.set(id, { program, output, ended: this.#limited(program, asked) });
    return id;
  }

  /** The exit code; null when it still runs after a while. */
  async wait(name: string, id: string): Promise<number | null> {
    const { ended } = this.#exec(name, id);
    using limit = new LinkedAbort([this.#running(name).ending.signal]);
    const late = this.host.clock.sleep(20_000, limit.signal).then(
      () => null,
      () => null,
    );
    const code = await Promise.race([ended, late]);
    limit.abort(new Error('answered'));
    this.#running(name); // one that was terminated meanwhile has no codes
    return code;
  }

  output(name: string, id: string, stream: 'stdout' | 'stderr'): Buffer {
    return Buffer.concat(this.#exec(name, id).output[stream]);
  }

  async writeFile(name: string, to: string, content: Buffer): Promise<void> {
    await this.#withFile(async (file) => {
      await writeFile(file, content);
      await this.#hosted(this.#running(name)).files.uploadFile(file, to, never);
    });
  }

  readFile(name: string, from: string): Promise<Buffer> {
    return this.#withFile(async (file) => {
      await this.#hosted(this.#running(name)).files.downloadFile(from, file, never);
      return await readFile(file);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { ending } of this.#sandboxes.values()) ending.abort(new Error('the platform ends'));
    await this.host[Symbol.asyncDispose]();
  }

  async #expire(sandbox: Sandbox, afterMs: number): Promise<void> {
    try {
      await this.host.clock.sleep(afterMs, sandbox.ending.signal);
      await this.remove(sandbox.asked.name);
    } catch {
      // It was terminated before.
    }
  }

  async #limited(program: InteractiveProcess, { timeout_seconds }: ExecAsked): Promise<number> {
    using limit = new LinkedAbort([]);
    const overrun = this.host.clock.sleep(timeout_seconds * 1000, limit.signal).then(
      () => 'overrun' as const,
      () => 'overrun' as const,
    );
    const first = await Promise.race([program.exited, overrun]);
    limit.abort(new Error('ended'));
    if (first !== 'overrun') return first ?? 137;
    await program.kill();
    return overrunCode;
  }

  async #withFile<T>(work: (file: string) => Promise<T>): Promise<T> {
    const folder = await mkdtemp(path.join(tmpdir(), 'sky-platform-'));
    try {
      return await work(path.join(folder, 'content'));
    } catch (error) {
      if (isRolloutError(error, 'TRANSFER_FAILED')) throw new Refusal(400, error.message);
      throw error;
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async #image(reference: string): Promise<ImageSource> {
    return (await this.#options.pull?.(reference)) ?? { kind: 'prebuilt', reference };
  }

  #shapeOf(asked: CreateAsked): { image: string; cpus: number | null; memoryMb: number | null } {
    if (asked.pool === null) {
      if (asked.image === null) throw new Refusal(400, 'a sandbox needs an image or a pool');
      const memoryMb = asked.memory_gb === null ? null : Math.round(asked.memory_gb * 1024);
      return { image: asked.image, cpus: asked.cpus, memoryMb };
    }
    const pool = this.#options.pools?.[asked.pool];
    if (pool === undefined) throw new Refusal(404, `no pool ${asked.pool}`);
    return { image: pool.image, cpus: pool.cpus ?? null, memoryMb: pool.memoryMb ?? null };
  }

  #secretsOf({ secrets }: CreateAsked): Record<string, string> {
    return Object.fromEntries(
      (secrets ?? []).map((name) => {
        const value = this.#options.secrets?.[name];
        if (value === undefined) throw new Refusal(404, `no secret ${name}`);
        return [name, value];
      }),
    );
  }

  #running(name: string): Sandbox {
    const sandbox = this.#sandboxes.get(name);
    if (sandbox === undefined || sandbox.ending.signal.aborted)
      throw new Refusal(404, `no sandbox ${name}`);
    if (sandbox.status !== 'RUNNING') throw new Refusal(400, `${name} does not run`);
    return sandbox;
  }

  #hosted({ hosted }: Sandbox): HostedSandbox {
    if (hosted === null) throw new Refusal(400, 'it does not run');
    return hosted;
  }

  #exec(name: string, id: string): Running {
    const running = this.#running(name).execs.get(id);
    if (running === undefined) throw new Refusal(404, `no command ${id}`);
    return running;
  }
}

const nothing: InteractiveProcess = {
  write: () => Promise.resolve(),
  endInput: () => undefined,
  exited: Promise.resolve(0),
  kill: () => Promise.resolve(),
};

function recordOf({ asked, status, error }: Sandbox): object {
  return { name: asked.name, status, error_message: error, pool: asked.pool };
}
