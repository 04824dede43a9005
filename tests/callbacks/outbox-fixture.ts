/** A sender over a store in memory, a clock that stands still, and a receiver that does what a test says. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { CallbackSender, type CallbackSenderOptions } from '../../src/callbacks/callback-sender.ts';
import type { DeliveryEnd } from '../../src/callbacks/callback-delivery.ts';
import type { Logger } from '../../src/core/logger.ts';
import { MemoryRolloutStore } from '../../src/store/memory/memory-rollout-store.ts';
import type { Delivery, NewDelivery } from '../../src/store/rollout-store.ts';
import { UrlPolicy, type UrlPolicyOptions } from '../../src/wire/url-policy.ts';
import { ManualClock } from '../fakes/manual-clock.ts';
import { until } from '../support/until.ts';

export interface ReceivedPost {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** `silent`: never answers. `reset`: the connection ends without an answer. */
export type Answer =
  | 'silent'
  | 'reset'
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
    };

export class Receiver implements AsyncDisposable {
  readonly posts: ReceivedPost[] = [];
  /** Per path, the answers to come; then 200. */
  readonly script = new Map<string, Answer[]>();
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor() {
    this.#server = createServer((request, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () => {
        const path = request.url ?? '';
        const body = Buffer.concat(pieces).toString();
        this.posts.push({ path, headers: request.headers, body });
        const answer = this.script.get(path)?.shift() ?? { status: 200 };
        if (answer === 'silent') return;
        if (answer === 'reset') request.socket.destroy();
        else response.writeHead(answer.status, answer.headers).end(answer.body ?? '');
      });
    });
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
  }

  static async start(): Promise<Receiver> {
    const receiver = new Receiver();
    receiver.#server.listen(0, '127.0.0.1');
    await once(receiver.#server, 'listening');
    return receiver;
  }

  get connections(): number {
    return this.#sockets.size;
  }

  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  url(path: string): string {
    return `http://${this.host}${path}`;
  }

  paths(): readonly string[] {
    return this.posts.map(({ path }) => path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

export class Outbox implements AsyncDisposable {
  readonly clock = new ManualClock();
  readonly store = new MemoryRolloutStore(() => this.clock.now());
  readonly ends: DeliveryEnd[] = [];
  readonly log: string[] = [];
  readonly sender: CallbackSender;

  constructor(
    options: CallbackSenderOptions & { readonly policy?: Partial<UrlPolicyOptions> } = {},
  ) {
    const { policy, ...rest } = options;
    const logger: Logger = {
      log: (level, message, fields) =>
        void this.log.push(`${level} ${message} ${JSON.stringify(fields)}`),
    };
    this.sender = new CallbackSender(
      {
        store: this.store,
        policy: new UrlPolicy({ allow: [], privateAddresses: 'allow', ...policy }),
        clock: this.clock,
        logger,
      },
      { random: () => 0, userAgent: 'slipway/test', ...rest },
    );
    this.sender.onEnd((end) => this.ends.push(end));
  }

  /** A rollout with these deliveries, committed. */
  async commit(rolloutId: string, urls: Partial<Record<Delivery['channel'], string>>) {
    const at = this.clock.now();
    const accepted = { id: rolloutId, tenant: 'default', request: '{}', digest: 'd' };
    await this.store.accept({ ...accepted, acceptedAt: at });
    const deliveries = Object.entries(urls).map(([channel, url]): NewDelivery => ({
      ...{ key: `${rolloutId}/${channel}`, rolloutId, url },
      channel: channel as Delivery['channel'],
      authorization: 'Bearer of-the-controller',
      body: JSON.stringify({ status: 'success', rollout_id: rolloutId, text: 'ä😀' }),
    }));
    await this.store.change({ id: rolloutId, from: ['queued'], set: {}, deliveries });
    return await this.store.deliveries(rolloutId);
  }

  /** The same, and out it goes. */
  async send(rolloutId: string, urls: Partial<Record<Delivery['channel'], string>>): Promise<void> {
    this.sender.enqueue(await this.commit(rolloutId, urls));
  }

  async delivery(rolloutId: string, channel: Delivery['channel'] = 'completion') {
    const found = (await this.store.deliveries(rolloutId)).find((each) => each.channel === channel);
    if (found === undefined) throw new Error('no such delivery');
    return found;
  }

  /** Waits until somebody sleeps for `ms`, then lets this time pass. */
  async pass(ms: number): Promise<void> {
    await until(`a pause of ${ms} ms; now ${this.clock.pauses.join()}`, () =>
      this.clock.pauses.includes(ms),
    );
    this.clock.advance(ms);
  }

  async ended(count: number): Promise<void> {
    await until(`${count} ends`, () => this.ends.length >= count);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.sender.close(AbortSignal.abort(new Error('the test is over')));
  }
}
