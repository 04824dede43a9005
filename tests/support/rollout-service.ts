/**
 * A rollout service as processes, started in either way: one server with its queue in memory, or a front end and two workers on NATS JetStream. Who talks to it over
 * HTTP need not know which. All share one state folder, as they would on one machine.
 */
import path from 'node:path';
import { NatsCluster, whyNoNats } from './nats/nats-cluster.ts';
import { startServeProcess, type ServeProcess } from './serve-process.ts';
import { until } from './until.ts';
import { startWorkerProcess, type WorkerProcess } from './worker-process.ts';

export const queueKinds = ['memory', 'jetstream'] as const;
export type QueueKind = (typeof queueKinds)[number];

/** Why it cannot run here; false = it can. */
export function whyNoQueue(queue: QueueKind): string | false {
  return queue === 'jetstream' ? whyNoNats : false;
}

export interface RolloutServiceOptions {
  readonly queue: QueueKind;
  readonly stateDir: string;
  /** What is executed and how, for whoever executes. */
  readonly flags: readonly string[];
  /** For the server, or the front end alone. */
  readonly frontFlags?: readonly string[];
  readonly maxConcurrent: number;
  /** See `serve-process.ts`. */
  readonly program?: readonly string[];
  readonly workerProgram?: readonly string[];
  readonly variables?: Readonly<Record<string, string>>;
  /** How long a dead worker is not missed. Default: 10 s. */
  readonly leaseSec?: number;
}

const workerCount = 2;

export class RolloutService implements AsyncDisposable {
  readonly #options: RolloutServiceOptions;
  readonly #nats: NatsCluster | null;
  readonly #workers: WorkerProcess[] = [];
  #front: ServeProcess | null = null;

  static async start(options: RolloutServiceOptions): Promise<RolloutService> {
    const nats = options.queue === 'jetstream' ? await NatsCluster.start() : null;
    const service = new RolloutService(options, nats);
    try {
      await service.startFront();
      const started = service.workerIndices.map((index) => service.startWorker(index));
      for (const one of await Promise.allSettled(started))
        if (one.status === 'rejected') throw one.reason;
      await service.untilWhole();
      return service;
    } catch (error) {
      await service[Symbol.asyncDispose]();
      throw error;
    }
  }

  private constructor(options: RolloutServiceOptions, nats: NatsCluster | null) {
    this.#options = options;
    this.#nats = nats;
  }

  /** Of the server's last life: one that is dead refuses. */
  get url(): string {
    return this.front.url;
  }

  /** The server, or the front end, of its last life. */
  get front(): ServeProcess {
    if (this.#front === null) throw new Error('the service has not been started');
    return this.#front;
  }

  /** Empty where the server executes by itself. */
  get workerIndices(): readonly number[] {
    return this.#nats === null ? [] : [...Array(workerCount).keys()];
  }

  get dataDir(): string {
    return path.join(this.#options.stateDir, 'data');
  }

  /** Data folders of those that execute. */
  get hostDirs(): readonly string[] {
    const dirs = this.workerIndices.map((index) => this.#workerDir(index));
    return dirs.length === 0 ? [this.dataDir] : dirs;
  }

  worker(index: number): WorkerProcess {
    const worker = this.#workers[index];
    if (worker === undefined) throw new Error(`there is no worker ${index}`);
    return worker;
  }

  /** Flags of the server, or the front end, for whoever starts one by himself. */
  get frontFlags(): readonly string[] {
    const { flags, frontFlags = [], maxConcurrent } = this.#options;
    return [
      ...[...flags, ...this.#queueFlags(), '--data-dir', this.dataDir],
      ...['--max-concurrent', String(maxConcurrent), ...frontFlags],
    ];
  }

  async startFront(): Promise<void> {
    const { stateDir, program, variables } = this.#options;
    this.#front = await startServeProcess(this.frontFlags, {
      stateDir,
      ...(program !== undefined && { program }),
      ...(variables !== undefined && { variables }),
    });
  }

  /** Each has a slot for every rollout that may run: it is the front end that counts them. */
  async startWorker(index: number): Promise<void> {
    const { stateDir, flags, maxConcurrent, workerProgram, variables } = this.#options;
    this.#workers[index] = await startWorkerProcess(
      [
        ...[...flags, ...this.#queueFlags(), '--data-dir', this.#workerDir(index)],
        ...['--max-concurrent', String(maxConcurrent), '--queue-host-name', `w${index + 1}`],
      ],
      {
        stateDir,
        ...(workerProgram !== undefined && { program: workerProgram }),
        ...(variables !== undefined && { variables }),
      },
    );
  }

  /** Until the front end knows its workers. */
  async untilWhole(): Promise<void> {
    if (this.#nats === null) return;
    const names = async (): Promise<ReadonlySet<string>> => {
      const { hosts } = (await (await fetch(`${this.url}/health`)).json()) as {
        readonly hosts: readonly { readonly name: string }[];
      };
      return new Set(hosts.map(({ name }) => name));
    };
    await until('all workers', async () => (await names()).size === workerCount, {
      limitMs: 120_000,
      everyMs: 20,
    });
  }

  /** In the order in which an operator would do it; what the server, or the front end, and then the workers have exited with. */
  async stop(): Promise<readonly (number | null)[]> {
    const front = await this.front.stop();
    return [front, ...(await Promise.all(this.#workers.map((worker) => worker.stop())))];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#front?.stop();
    await Promise.all(this.#workers.map((worker) => worker.stop()));
    await this.#nats?.[Symbol.asyncDispose]();
  }

  #queueFlags(): readonly string[] {
    const { leaseSec = 10 } = this.#options;
    return this.#nats === null
      ? []
      : ['--queue', this.#nats.url, '--queue-lease-sec', String(leaseSec)];
  }

  #workerDir(index: number): string {
    return path.join(this.#options.stateDir, `worker-${index + 1}`);
  }
}
