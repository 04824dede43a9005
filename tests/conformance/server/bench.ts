/** A rollout service with places for two, as its clients see it: they submit, cancel, look, take callbacks, and are its rollouts' model, which thinks for ever. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { ReceiptDocument } from '../../../src/wire/api/receipt.ts';
import type { CallbackChannel } from '../../../src/wire/rollout/callback-payloads.ts';
import type { Capacity } from '../../../src/wire/rollout/health.ts';
import { ChatUpstream } from '../../fakes/chat-upstream.ts';
import {
  RolloutService,
  type QueueKind,
  type RolloutServiceOptions,
} from '../../support/rollout-service.ts';
import { until } from '../../support/until.ts';

export const places = { running: 2, waiting: 2 } as const;

export interface ServerCase {
  readonly id: string;
  readonly title: string;
  /** What it says is of one of them alone; default: both. */
  readonly queues?: readonly QueueKind[];
  /** Left out where there is little time. */
  readonly isLong?: boolean;
  run(bench: ServerBench): Promise<void>;
}

export interface TakenCallback {
  readonly channel: CallbackChannel;
  readonly key: string;
  readonly body: Readonly<Record<string, unknown>>;
  readonly text: string;
  readonly isTaken: boolean;
}

export interface Answer {
  readonly status: number;
  readonly retryAfter: string | null;
  readonly text: string;
}

/** As the API tells it. */
export interface SeenRollout {
  readonly state: string;
  readonly outcome: { readonly cause: string | null; readonly reward: number | null } | null;
}

export class ServerBench implements AsyncDisposable {
  readonly service: RolloutService;
  /** For callbacks. */
  patienceMs = 30_000;
  readonly #peer: ChatUpstream;
  readonly #callbacks = new Map<string, TakenCallback[]>();
  /** `grader of r1`: refused for now. */
  readonly #refused = new Set<string>();
  readonly #calls = new Map<string, number>();
  readonly #stack = new AsyncDisposableStack();

  static async open(
    queue: QueueKind,
    broken: Pick<RolloutServiceOptions, 'program' | 'variables'> = {},
  ): Promise<ServerBench> {
    await using stack = new AsyncDisposableStack();
    const stateDir = await mkdtemp(path.join(os.tmpdir(), 'server-suite-'));
    stack.defer(() => rm(stateDir, { recursive: true, force: true, maxRetries: 5 }));
    const peer: ChatUpstream = stack.use(
      await ChatUpstream.start((response, { url, headers, body }) => {
        const [, kind, id = '', channel = ''] = url.split('/');
        if (kind === 'model') {
          bench.#calls.set(id, (bench.#calls.get(id) ?? 0) + 1);
          response.on('close', () => bench.#calls.set(id, (bench.#calls.get(id) ?? 0) - 1));
          return;
        }
        const key = String(headers['idempotency-key']);
        const isTaken = bench.#take(id, channel as CallbackChannel, { key, text: String(body) });
        response.writeHead(isTaken ? 200 : 503, { 'content-type': 'application/json' }).end('{}');
      }),
    );
    const service = stack.use(
      await RolloutService.start({
        ...{ queue, stateDir, maxConcurrent: places.running, leaseSec: 2, ...broken },
        flags: ['--backend', 'null', '--shutdown-drain-sec', '1'],
        frontFlags: ['--max-queue-depth', String(places.waiting)],
      }),
    );
    const bench: ServerBench = new ServerBench(service, peer);
    bench.#stack.use(stack.move());
    return bench;
  }

  private constructor(service: RolloutService, peer: ChatUpstream) {
    this.service = service;
    this.#peer = peer;
  }

  /** `does`: `metadata.null`; `more`: other fields of the request. */
  async submit(id: string, does: object = {}, more: object = {}): Promise<Answer> {
    const peer = this.#peer.url;
    return await this.post('/rollout', {
      ...{ rollout_id: id, initial_messages: [{ role: 'user', content: 'hello' }] },
      ...{ metadata: { null: does }, chat_completions_url: `${peer}/model/${id}` },
      completion_callback_url: `${peer}/callback/${id}/completion`,
      grader_callback_url: `${peer}/callback/${id}/grader`,
      ...more,
    });
  }

  /** Accepted, or the test fails. */
  async accepted(id: string, does: object = {}, more: object = {}): Promise<void> {
    const answer = await this.submit(id, does, more);
    if (answer.status !== 202) throw new Error(`${id}: ${answer.status} ${answer.text}`);
  }

  /** With long work, and its agent at it. */
  async atWork(...ids: readonly string[]): Promise<void> {
    for (const id of ids) await this.accepted(id, { duration_ms: 600_000 });
    for (const id of ids) await this.shows(id, 'stage', 'running agent');
  }

  async cancel(selector: object): Promise<readonly ReceiptDocument[]> {
    const { text } = await this.post('/api/v1/rollouts/cancel', selector);
    return (JSON.parse(text) as { readonly receipts: readonly ReceiptDocument[] }).receipts;
  }

  async rollout(id: string): Promise<SeenRollout> {
    return await this.#get(`/api/v1/rollouts/${id}`);
  }

  async is(id: string, state: string): Promise<void> {
    await until(`${id} is ${state}`, async () => (await this.rollout(id)).state === state, {
      everyMs: 10,
    });
  }

  async shows(id: string, field: string, value: unknown): Promise<void> {
    await until(`${field} of ${id} is ${String(value)}`, async () => {
      const document = (await this.rollout(id)) as unknown as Readonly<Record<string, unknown>>;
      return document[field] === value;
    });
  }

  /** Types and ids of the events so far, oldest first. */
  async events(): Promise<readonly { readonly type: string; readonly rollout_id: string }[]> {
    const page = await this.#get<{ events: { type: string; rollout_id: string }[] }>(
      '/api/v1/events?limit=1000',
    );
    return page.events;
  }

  async capacity(): Promise<Capacity> {
    return (await this.#get<{ capacity: Capacity }>('/health')).capacity;
  }

  async isStopping(): Promise<boolean> {
    return (await this.#get<{ stopping?: boolean }>('/health')).stopping === true;
  }

  /** In order, repeated ones included. */
  callbacks(id: string): readonly TakenCallback[] {
    return this.#callbacks.get(id) ?? [];
  }

  async called(id: string, channel: CallbackChannel, isTaken = true): Promise<TakenCallback> {
    const find = (): TakenCallback | undefined =>
      this.callbacks(id).find((one) => one.channel === channel && one.isTaken === isTaken);
    await until(`${channel} of ${id}`, () => find() !== undefined, { limitMs: this.patienceMs });
    return find()!;
  }

  /** Its callbacks of this channel get no acknowledgement until `take`. */
  refuse(id: string, channel: CallbackChannel): void {
    this.#refused.add(`${channel} of ${id}`);
  }

  take(): void {
    this.#refused.clear();
  }

  /** Model calls of a rollout that have no end. */
  openCalls(id: string): number {
    return this.#calls.get(id) ?? 0;
  }

  /** What server and workers have logged as errors: none of this is one. */
  async errors(): Promise<readonly string[]> {
    const dirs = new Set([this.service.dataDir, ...this.service.hostDirs]);
    const logs = [...dirs].map((dir) =>
      readFile(path.join(dir, 'logs', 'server.ndjson'), 'utf8').catch(() => ''),
    );
    return (await Promise.all(logs))
      .flatMap((text) => text.split('\n'))
      .filter((line) => line.includes('"level":"error"'));
  }

  /** Nothing of the cases before is left. */
  async clear(): Promise<void> {
    this.take();
    await this.cancel({ all: true });
    await until('nothing is held', async () => (await this.capacity()).in_flight === 0);
  }

  async post(route: string, body: object): Promise<Answer> {
    const answer = await fetch(`${this.service.url}${route}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    const { status, headers } = answer;
    return { status, retryAfter: headers.get('retry-after'), text: await answer.text() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stack.disposeAsync();
  }

  async #get<Document>(route: string): Promise<Document> {
    return (await (await fetch(`${this.service.url}${route}`)).json()) as Document;
  }

  #take(
    id: string,
    channel: CallbackChannel,
    { key, text }: { readonly key: string; readonly text: string },
  ): boolean {
    const isTaken = !this.#refused.has(`${channel} of ${id}`);
    const body = JSON.parse(text) as TakenCallback['body'];
    const known = this.#callbacks.get(id) ?? [];
    this.#callbacks.set(id, [...known, { channel, key, body, text, isTaken }]);
    return isTaken;
  }
}
