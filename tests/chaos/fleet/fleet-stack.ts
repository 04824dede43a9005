/** A rollout service for the chaos of fleets: a front end with a queue and workers, each a process of its own. */
import { mkdir, mkdtemp, open, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { startServeProcess, type ServeProcess } from '../../support/serve-process.ts';
import { startWorkerProcess, type WorkerProcess } from '../../support/worker-process.ts';
import { readSights, type WorkSight } from './judge-fleet.ts';
import type { WitnessConfig } from './witness-workflow.ts';

export interface FleetStackOptions {
  readonly workers: number;
  readonly slotsPerHost: number;
  readonly maxConcurrent: number;
  readonly maxQueueDepth: number;
  /** Of the tenants whose rollouts' ids begin with their names and `::`. */
  readonly tenantWeights: Readonly<Record<string, number>>;
  /** What everybody dials; one list per process, so that one can be cut off. */
  readonly queueUrls: (process: string) => readonly string[];
  /** `[queue]` beside the addresses. */
  readonly queueSettings: string;
  /** Arguments of node that start the parts in their own way; default: `slipway serve` and `slipway worker`. */
  readonly programs?: FleetPrograms;
}

export interface FleetPrograms {
  readonly frontEnd: readonly string[];
  readonly worker: readonly string[];
}

/** Every host executes whatever it was given. */
export const fleetWithoutClaims: FleetPrograms = {
  frontEnd: [path.join(import.meta.dirname, 'front-end-without-claims.ts')],
  worker: [path.join(import.meta.dirname, 'worker-without-claims.ts')],
};

export class FleetStack implements AsyncDisposable {
  readonly #root: string;
  readonly #options: FleetStackOptions;
  readonly #workers: (WorkerProcess | null)[];
  readonly #sights: WorkSight[] = [];
  #readBytes = 0;
  #frontEnd: ServeProcess | null = null;
  /** The address of the last life: a dead server refuses. */
  #url = '';

  static async create(options: FleetStackOptions): Promise<FleetStack> {
    const root = await mkdtemp(path.join(os.tmpdir(), 'fleet-'));
    const stack = new FleetStack(root, options);
    await writeFile(stack.#sightsFile, '');
    return stack;
  }

  private constructor(root: string, options: FleetStackOptions) {
    this.#root = root;
    this.#options = options;
    this.#workers = Array.from({ length: options.workers }, () => null);
  }

  get url(): string {
    return this.#url;
  }

  get frontEnd(): ServeProcess {
    if (this.#frontEnd === null) throw new Error('there is no front end');
    return this.#frontEnd;
  }

  async start(): Promise<void> {
    await this.startFrontEnd();
    await Promise.all(this.#workers.map((_, index) => this.startWorker(index)));
  }

  async startFrontEnd(): Promise<void> {
    const { maxConcurrent, maxQueueDepth, tenantWeights, programs } = this.#options;
    const tenants = Object.entries(tenantWeights).map(
      ([name, weight]) => `[tenants.${name}]\nid_prefix = "${name}::"\nweight = ${weight}\n`,
    );
    const config = await this.#write('front-end', [
      ...this.#queue('front-end'),
      ...[this.#backend('front-end'), ...tenants],
    ]);
    this.#frontEnd = await startServeProcess(
      [
        ...['--config', config, '--data-dir', path.join(this.#root, 'data')],
        ...['--max-concurrent', String(maxConcurrent), '--max-queue-depth', String(maxQueueDepth)],
        ...['--shutdown-drain-sec', '1'],
      ],
      {
        stateDir: path.join(this.#root, 'front-end'),
        ...(programs !== undefined && { program: programs.frontEnd }),
      },
    );
    this.#url = this.#frontEnd.url;
  }

  async killFrontEnd(): Promise<void> {
    await this.#frontEnd?.kill();
  }

  async startWorker(index: number): Promise<void> {
    const { slotsPerHost, programs } = this.#options;
    const name = hostName(index);
    const config = await this.#write(name, [
      ...this.#queue(name),
      ...[this.#backend(name), `[admission]\nmax_concurrent = ${slotsPerHost}\n`],
    ]);
    this.#workers[index] = await startWorkerProcess(['--config', config], {
      stateDir: path.join(this.#root, name),
      ...(programs !== undefined && { program: programs.worker }),
    });
  }

  async killWorker(index: number): Promise<void> {
    await this.#workers[index]?.kill();
  }

  /** What the agents wrote down so far; only what is new of it is read. */
  async sights(): Promise<readonly WorkSight[]> {
    await using file = await open(this.#sightsFile);
    const { size } = await file.stat();
    const bytes = Buffer.alloc(size - this.#readBytes);
    await file.read(bytes, 0, bytes.length, this.#readBytes);
    const whole = bytes.subarray(0, bytes.lastIndexOf('\n') + 1);
    this.#readBytes += whole.length;
    for (const sight of readSights(whole.toString())) this.#sights.push(sight);
    return this.#sights;
  }

  /** What the processes complained about, their last lines. */
  errors(): string {
    const all = [this.#frontEnd, ...this.#workers].map((process) => process?.errors() ?? '');
    return all.map((text) => text.split('\n').slice(-10).join('\n')).join('\n--\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(
      [this.#frontEnd, ...this.#workers].map((process) => process?.kill() ?? Promise.resolve()),
    );
    await rm(this.#root, { recursive: true, force: true, maxRetries: 5 });
  }

  get #sightsFile(): string {
    return path.join(this.#root, 'sights.ndjson');
  }

  async #write(name: string, tables: readonly string[]): Promise<string> {
    const dir = path.join(this.#root, name);
    await mkdir(dir, { recursive: true });
    const file = path.join(dir, 'slipway.toml');
    await writeFile(file, tables.join('\n'));
    return file;
  }

  #queue(process: string): readonly string[] {
    const urls = this.#options.queueUrls(process).map((url) => JSON.stringify(url));
    return [`[queue]\nurl = [${urls.join(', ')}]\n${this.#options.queueSettings}\n`];
  }

  #backend(host: string): string {
    const module = path.join(import.meta.dirname, 'witness-workflow.ts');
    const config: WitnessConfig = { host, file: this.#sightsFile };
    const table = `{ host = ${JSON.stringify(config.host)}, file = ${JSON.stringify(config.file)} }`;
    return [
      ...['[backend]', 'kind = "local"', '[backend.local]'],
      ...[`workflow = "${module}:WitnessedWork"`, `grader = "${module}:AskedGrade"`],
      ...[`workflow_config = ${table}`, ''],
    ].join('\n');
  }
}

export function hostName(index: number): string {
  return `w${index + 1}`;
}
