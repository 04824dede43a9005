/** A front end and workers on one NATS, all in this process, each in folders of its own. */
import path from 'node:path';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import { composeApp } from '../../../src/app/compose.ts';
import {
  startServer,
  type RunningServer,
  type StartServerOptions,
} from '../../../src/app/serve.ts';
import {
  startWorker,
  type RunningWorker,
  type StartWorkerOptions,
} from '../../../src/app/worker.ts';
import { readServeConfig, type ServeFlags } from '../../../src/config/serve/read-serve-config.ts';
import { never } from '../../../src/core/linked-abort.ts';
import { NatsCluster } from '../../support/nats/nats-cluster.ts';
import { until } from '../../support/until.ts';

export class FleetFixture implements AsyncDisposable {
  readonly nats: NatsCluster;
  readonly #root: string;
  readonly #stack = new AsyncDisposableStack();
  #count = 0;

  static async start(): Promise<FleetFixture> {
    const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-fleet-'));
    return new FleetFixture(await NatsCluster.start(), root);
  }

  private constructor(nats: NatsCluster, root: string) {
    this.nats = nats;
    this.#root = root;
    this.#stack.defer(() => rm(root, { recursive: true, force: true }));
    this.#stack.use(nats);
  }

  async front(
    flags: ServeFlags = {},
    replace: NonNullable<StartServerOptions['replace']> = {},
  ): Promise<RunningServer> {
    const { config, ports } = await this.#config('front', flags);
    const server = await startServer(config, { ports, signal: never, replace });
    this.#stack.defer(() => server.stop(AbortSignal.abort(new Error('the test is over'))));
    return server;
  }

  async worker(
    flags: ServeFlags = {},
    replace: NonNullable<StartWorkerOptions['replace']> = {},
  ): Promise<RunningWorker> {
    const { config, ports } = await this.#config(`worker-${(this.#count += 1)}`, flags);
    const worker = await startWorker(config, { ports, signal: never, replace });
    this.#stack.defer(() => worker.stop(AbortSignal.abort(new Error('the test is over'))));
    return worker;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  async #config(name: string, flags: ServeFlags) {
    const dir = path.join(this.#root, name);
    const ports = await composeApp({ SLIPWAY_STATE_DIR: dir, HOME: dir }, this.#root);
    const given = {
      ...{ '--backend': 'null', '--port': '0', '--shutdown-drain-sec': '0' },
      ...{ '--queue': this.nats.url, '--queue-lease-sec': '2', '--queue-host-name': name },
    };
    return { ports, config: await readServeConfig({ ...given, ...flags }, ports.machine) };
  }
}

export interface HostsHealth {
  readonly hosts: readonly { readonly name: string; readonly slots: number }[];
}

export async function health(server: RunningServer): Promise<HostsHealth> {
  return (await (await fetch(`${server.controlUrl}/health`)).json()) as HostsHealth;
}

export async function untilHosts(server: RunningServer, count: number): Promise<void> {
  await until(`${count} hosts`, async () => (await health(server)).hosts.length === count);
}

export async function hasBegun(
  { controlUrl }: Pick<RunningServer, 'controlUrl'>,
  id: string,
): Promise<boolean> {
  const answer = await fetch(`${controlUrl}/api/v1/rollouts/${id}`);
  return ((await answer.json()) as { readonly has_agent_begun: boolean }).has_agent_begun;
}

/** Rollouts that it holds. */
export async function runningAt(worker: RunningWorker): Promise<number> {
  const answer = await fetch(`${worker.dataUrls[0]}/health`);
  return ((await answer.json()) as { readonly running: number }).running;
}

export async function post(
  server: RunningServer,
  route: string,
  body: object,
): Promise<{ readonly status: number; readonly body: Readonly<Record<string, unknown>> }> {
  const answer = await fetch(`${server.controlUrl}${route}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

export async function statusOf(server: RunningServer, id: string): Promise<string> {
  const answer = await fetch(`${server.controlUrl}/rollout/${encodeURIComponent(id)}/status`);
  return ((await answer.json()) as { readonly status: string }).status;
}

export async function submit(
  server: RunningServer,
  id: string,
  does: Readonly<Record<string, unknown>> = {},
): Promise<void> {
  const answer = await post(server, '/rollout', {
    ...{ rollout_id: id, initial_messages: [{ role: 'user', content: 'hello' }] },
    ...{ metadata: { null: does }, chat_completions_url: 'http://127.0.0.1:9/chat' },
    completion_callback_url: 'http://127.0.0.1:9/completion',
  });
  if (answer.status !== 202)
    throw new Error(`refused with ${answer.status}: ${JSON.stringify(answer.body)}`);
}
