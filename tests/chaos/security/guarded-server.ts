/**
 * `slipway serve` with every kind of key, rollouts that are held while it is attacked, and the three others that a rollout deals with: its controller, its
 * model, and its workflow.
 */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { ChatUpstream } from '../../fakes/chat-upstream.ts';
import { startServeProcess, type ServeProcess } from '../../support/serve-process.ts';
import { until } from '../../support/until.ts';
import type { HeldMetadata, Sight } from './held-workflow.ts';

export const canary = (what: string): string => `canary-${what}-${randomBytes(12).toString('hex')}`;

export interface HeldRollout {
  readonly id: string;
  readonly index: number;
  readonly model: NonNullable<Sight['model']>;
  readonly sight: Sight;
  /** Lets its workflow go on. */
  release(): void;
}

export interface Callback {
  readonly url: string;
  readonly body: string;
}

const source = import.meta.dirname;

export class GuardedServer implements AsyncDisposable {
  readonly keys = { control: canary('control'), blue: canary('blue'), green: canary('green') };
  /** What must not be found: keys and addresses by what they are. */
  readonly secrets = new Map<string, string>();
  readonly callbacks: Callback[] = [];
  readonly root: string;
  readonly upstream: ChatUpstream;
  readonly server: ServeProcess;
  readonly #world: Server;
  readonly #arrived = new Map<
    string,
    { readonly sight: Sight; readonly response: ServerResponse }
  >();

  private constructor(
    parts: { readonly root: string; readonly upstream: ChatUpstream; readonly world: Server },
    server: ServeProcess,
    keys: GuardedServer['keys'],
  ) {
    this.root = parts.root;
    this.upstream = parts.upstream;
    this.#world = parts.world;
    this.server = server;
    this.keys = keys;
    for (const [name, key] of Object.entries(keys)) this.secrets.set(`the ${name} key`, key);
  }

  /** `root`: an empty folder for everything. */
  static async start(root: string, live: number): Promise<GuardedServer> {
    const keys = { control: canary('control'), blue: canary('blue'), green: canary('green') };
    for (const [name, key] of Object.entries(keys))
      writeFileSync(path.join(root, name), `${key}\n`);
    writeFileSync(path.join(root, 'outside.txt'), 'outside of everything');
    writeFileSync(
      path.join(root, 'slipway.toml'),
      `
data_dir = "data"
[keys]
control = ["file:control"]
[tenants.blue]
key = ["file:blue"]
[tenants.green]
key = ["file:green"]
[backend]
kind = "local"
[backend.local]
workflow = ${JSON.stringify(`${path.join(source, 'held-workflow.ts')}:Held`)}
grader = ${JSON.stringify(`${path.join(source, 'held-workflow.ts')}:Grading`)}
[admission]
max_concurrent = ${live}
max_queue_depth = 500
[limits]
body_bytes = 100000
[log]
level = "debug"
`,
    );
    const stateDir = path.join(root, 'state');
    mkdirSync(stateDir);
    // It says back what it got, as upstreams do that name a wrong key in their refusal.
    const upstream = await ChatUpstream.start((response, { headers, url }) => {
      const status = url.includes('/refusing') ? 403 : 200;
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ error: { message: `got ${headers.authorization}` } }));
    });
    const world = createServer();
    world.listen(0, '127.0.0.1');
    await once(world, 'listening');
    const config = path.join(root, 'slipway.toml');
    const server = await startServeProcess(['--config', config], { stateDir });
    const guarded = new GuardedServer({ root, upstream, world }, server, keys);
    world.on('request', (request, response) => {
      void text(request).then((body) => guarded.#take(request.url ?? '', body, response));
    });
    return guarded;
  }

  /** Where workflows report and callbacks go. */
  get worldUrl(): string {
    return `http://127.0.0.1:${(this.#world.address() as AddressInfo).port}`;
  }

  get dataDir(): string {
    return path.join(this.root, 'data');
  }

  /** A request body with fresh secrets, which are noted. */
  body(id: string, metadata: Omit<HeldMetadata, 'name'>, chatUrl: string): object {
    const secret = (what: string): string => {
      const value = canary(what);
      this.secrets.set(`the ${what} of ${JSON.stringify(id)}`, value);
      return value;
    };
    const callback = `${this.worldUrl}/callback?token=${secret('callback-token')}&channel=`;
    return {
      ...{ rollout_id: id, initial_messages: [{ role: 'user', content: 'hi' }] },
      chat_completions_url: chatUrl,
      completion_callback_url: `${callback}completion`,
      grader_callback_url: `${callback}grader`,
      controller_api_key: secret('controller-key'),
      llm_api_key: secret('llm-key'),
      metadata: { ...metadata, name: id },
    };
  }

  /** With the control key, unless `key` is another. */
  async ask(url: string, options: RequestInit & { readonly key?: string | null } = {}) {
    const { key = this.keys.control, ...init } = options;
    return await fetch(`${this.server.url}${url}`, {
      ...init,
      headers: {
        ...(key === null ? {} : { authorization: `Bearer ${key}` }),
        ...(init.body === undefined ? {} : { 'content-type': 'application/json' }),
      },
    });
  }

  async post(url: string, body: object, key?: string | null) {
    const as = key === undefined ? {} : { key };
    return await this.ask(url, { method: 'POST', body: JSON.stringify(body), ...as });
  }

  /** Submits a rollout and waits until its workflow holds. `suffix` is part of its model's address. */
  async hold(
    index: number,
    options: {
      readonly key?: string;
      readonly suffix?: string;
      readonly isBlabbing?: boolean;
    } = {},
  ): Promise<HeldRollout> {
    const id = `held-${index}`;
    const metadata = {
      rendezvous: `${this.worldUrl}/arrived`,
      outside: path.join(this.root, 'outside.txt'),
      isBlabbing: options.isBlabbing === true,
    };
    const chatUrl = `${this.upstream.url}/u/${index}${options.suffix ?? ''}`;
    const answer = await this.post('/rollout', this.body(id, metadata, chatUrl), options.key);
    if (answer.status !== 202) throw new Error(`answered ${answer.status}: ${await answer.text()}`);
    await until(`${id} holds`, () => this.#arrived.has(id));
    const { sight, response } = this.#arrived.get(id) ?? {};
    if (!sight?.model || response === undefined) throw new Error(`${id} has no model`);
    this.secrets.set(`the route key of ${id}`, sight.model.apiKey);
    return {
      ...{ id, index, sight, model: sight.model },
      release: () => void response.end('go on'),
    };
  }

  async state(id: string): Promise<string> {
    const answer = await this.ask(`/rollout/${encodeURIComponent(id)}/status`);
    return ((await answer.json()) as { status: string }).status;
  }

  async ended(id: string): Promise<void> {
    await until(`${id} ends`, async () =>
      ['success', 'failure', 'cancelled'].includes(await this.state(id)),
    );
  }

  #take(url: string, body: string, response: ServerResponse): void {
    if (url.startsWith('/arrived')) {
      const sight = JSON.parse(body) as Sight;
      this.#arrived.set(sight.name, { sight, response });
      return;
    }
    this.callbacks.push({ url, body });
    response.end('{}');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { response } of this.#arrived.values()) response.end('go on');
    await this.server.stop();
    this.#world.closeAllConnections();
    this.#world.close();
    await this.upstream[Symbol.asyncDispose]();
  }
}
