/** One `nats-server` process with JetStream, its data in a folder that outlives it. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { natsServerPath } from '../../../scripts/setup/nats-server.js';
import { findProgram } from '../../../src/environments/local/host-command.ts';

export interface NatsNodePorts {
  readonly client: number;
  readonly cluster: number;
  readonly monitor: number;
}

export interface NatsNodeOptions {
  readonly name: string;
  /** Its configuration, its log and its streams. */
  readonly dir: string;
  readonly ports: NatsNodePorts;
  /** Ports of the doors to the other nodes; none = a server by itself. */
  readonly routes: readonly number[];
  /** Lines for its configuration: users, TLS, limits. */
  readonly settings: string;
}

const readyMs = 30_000;

export class NatsNode implements AsyncDisposable {
  readonly name: string;
  /** Of its own port. */
  readonly url: string;
  readonly ports: NatsNodePorts;
  readonly #options: NatsNodeOptions;
  #child: ChildProcess | null = null;
  #ended: Promise<unknown> = Promise.resolve();

  constructor(options: NatsNodeOptions) {
    this.#options = options;
    this.name = options.name;
    this.ports = options.ports;
    this.url = `nats://127.0.0.1:${options.ports.client}`;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  get isUp(): boolean {
    return this.#child !== null && this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Starts the process; `ready` says when it serves. With the data of its last life, if it had one. */
  async start(): Promise<void> {
    if (this.isUp) return;
    const program = await natsServerPath();
    if (program === null) throw new Error('no nats-server here: npm run setup -- tests');
    const { dir } = this.#options;
    await mkdir(dir, { recursive: true });
    const config = path.join(dir, 'nats.conf');
    await writeFile(config, this.#config());
    // The server goes with the process that started it, whatever ends that.
    const setpriv = findProgram('setpriv');
    const before = setpriv === null ? [] : [setpriv, '--pdeathsig', 'KILL'];
    const argv = [...before, program, '-c', config];
    await appendFile(this.#log(), '');
    const child = spawn(argv[0] ?? program, argv.slice(1), { stdio: 'ignore' });
    this.#child = child;
    this.#ended = once(child, 'exit');
    await once(child, 'spawn');
  }

  /** Until it answers that JetStream is up to date here. */
  async ready(): Promise<void> {
    const deadline = performance.now() + readyMs;
    while (!(await this.#isHealthy())) {
      if (this.isUp && performance.now() < deadline) await delay(50);
      else throw new Error(`${this.name} is not ready\n${await this.log()}`);
    }
  }

  /** Of the cluster's metadata, as this node sees it; null = none. */
  async metaLeader(): Promise<string | null> {
    const found = (await this.#ask('jsz')) as {
      readonly meta_cluster?: { readonly leader?: string };
    } | null;
    return found?.meta_cluster?.leader ?? null;
  }

  /** Connections with other nodes. */
  async routes(): Promise<number> {
    const found = (await this.#ask('routez')) as { readonly num_routes?: number } | null;
    return found?.num_routes ?? 0;
  }

  /** SIGKILL, and gone when it resolves. */
  async kill(): Promise<void> {
    if (this.isUp) this.#child?.kill('SIGKILL');
    await this.#ended;
  }

  async stop(): Promise<void> {
    if (this.isUp) this.#child?.kill('SIGTERM');
    const force = setTimeout(() => this.#child?.kill('SIGKILL'), 10_000);
    await this.#ended;
    clearTimeout(force);
  }

  /** The last lines that it logged. */
  async log(): Promise<string> {
    const text = await readFile(this.#log(), 'utf8').catch(() => '');
    return text.split('\n').slice(-20).join('\n');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  #log(): string {
    return path.join(this.#options.dir, 'nats.log');
  }

  async #isHealthy(): Promise<boolean> {
    const health = (await this.#ask('healthz')) as { readonly status?: string } | null;
    return health?.status === 'ok';
  }

  async #ask(route: string): Promise<unknown> {
    try {
      const url = `http://127.0.0.1:${this.ports.monitor}/${route}`;
      const answer = await fetch(url, { signal: AbortSignal.timeout(2_000) });
      return await answer.json();
    } catch {
      return null; // not there yet, or not any more
    }
  }

  #config(): string {
    const { name, dir, ports, routes, settings } = this.#options;
    const cluster = [
      'cluster {',
      '  name: "fleet"',
      `  listen: "127.0.0.1:${ports.cluster}"`,
      // Routes go through the doors alone: what a node tells the others of itself leads nowhere.
      '  advertise: "127.0.0.1:9"',
      '  no_advertise: true',
      `  routes: [${routes.map((port) => `"nats://127.0.0.1:${port}"`).join(', ')}]`,
      '}',
    ];
    return [
      `server_name: "${name}"`,
      `listen: "127.0.0.1:${ports.client}"`,
      `http: "127.0.0.1:${ports.monitor}"`,
      `log_file: "${this.#log()}"`,
      'ping_interval: "2s"',
      'ping_max: 2',
      'write_deadline: "2s"',
      `jetstream { store_dir: "${path.join(dir, 'data')}" }`,
      ...(routes.length > 0 ? cluster : []),
      settings,
      '',
    ].join('\n');
  }
}

/** Below the range from which the kernel gives ports to those who dial: a node finds its port again after its death. */
export async function freePorts(count: number): Promise<readonly number[]> {
  const found = new Set<number>();
  while (found.size < count) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    if (!found.has(port) && (await isFree(port))) found.add(port);
  }
  return [...found];
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once('error', () => resolve(false));
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)));
  });
}
