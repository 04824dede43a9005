/**
 * Receives callbacks over HTTP, for those who write a controller in TypeScript: `POST /v1/rollouts/{id}/completion` and `/grader` under one bearer.
 * 401 without it, 422 for an id that is no path segment or not the body's and for a status that is no end, 404 for an id that nobody waits for, 500 when
 * the commit failed (the sender comes again), 200 with the acknowledgement.
 */
import { timingSafeEqual } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import type { CallbackChannel } from '../wire/rollout/callback-payloads.ts';
import { rolloutIdMaxBytes, rolloutIdProblem } from '../wire/rollout/rollout-id.ts';
import type { AckDocument, CallbackDocument, CallbackRendezvous } from './callback-rendezvous.ts';

/** One request that came in with the right bearer, whatever became of it. */
export interface ReceivedCallback {
  readonly rolloutId: string;
  readonly channel: CallbackChannel;
  /** `Idempotency-Key`. */
  readonly key: string | null;
  /** The body as it came. */
  readonly text: string;
  readonly at: Date;
}

export interface CallbackListenerOptions {
  readonly rendezvous: Pick<CallbackRendezvous, 'receive'>;
  /** What callbacks have to bring as bearer. Not empty. */
  readonly apiKey: string;
  /** Called first; its answer, if any, is sent instead of taking the callback: for tests that play a receiver in trouble. */
  readonly onReceived?: (callback: ReceivedCallback) => ListenerFault | undefined;
}

export interface ListenerFault {
  /** null = the connection is closed without an answer. */
  readonly status: number | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** Whether the callback was taken all the same: its acknowledgement is lost. */
  readonly isTaken?: boolean;
}

export interface ListenAddress {
  readonly host?: string;
  readonly port?: number;
  /** How a server elsewhere reaches it, where that is not the address itself. */
  readonly publicUrl?: string;
}

const maxBodyBytes = 256 * 2 ** 20;
const endStatuses: Readonly<Record<CallbackChannel, readonly unknown[]>> = {
  completion: ['success', 'failure', 'cancelled'],
  grader: ['success', 'failure'],
};

export class CallbackListener implements AsyncDisposable {
  readonly #options: CallbackListenerOptions;
  readonly #server: FastifyInstance;
  readonly #expected: Buffer;
  #url: string | null = null;

  constructor(options: CallbackListenerOptions) {
    if (options.apiKey.trim() === '') throw new TypeError('the key of a listener is empty');
    this.#options = options;
    this.#expected = Buffer.from(options.apiKey);
    this.#server = fastify({
      ...{ bodyLimit: maxBodyBytes, forceCloseConnections: true },
      // As it stands in the path: up to three characters for each byte.
      routerOptions: { maxParamLength: 3 * rolloutIdMaxBytes },
    });
    this.#server.removeAllContentTypeParsers();
    this.#server.addContentTypeParser('*', { parseAs: 'string' }, (_request, body, done) =>
      done(null, body),
    );
    for (const channel of ['completion', 'grader'] as const)
      this.#server.post<{ Params: { id: string } }>(
        `/v1/rollouts/:id/${channel}`,
        { onRequest: (request, reply) => this.#authenticate(request, reply) },
        (request, reply) => this.#take(channel, request, reply),
      );
  }

  /** Address without a path. Throws before `start`. */
  get url(): string {
    if (this.#url === null) throw new Error('the listener has not started');
    return this.#url;
  }

  /** Port 0 = any free one. */
  async start(at: ListenAddress = {}): Promise<string> {
    const host = at.host ?? '127.0.0.1';
    await this.#server.listen({ host, port: at.port ?? 0 });
    const { port } = this.#server.server.address() as AddressInfo;
    const own = `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
    this.#url = (at.publicUrl ?? own).replace(/\/$/, '');
    return this.#url;
  }

  callbackUrl(rolloutId: string, channel: CallbackChannel): string {
    return `${this.url}/v1/rollouts/${encodeURIComponent(rolloutId)}/${channel}`;
  }

  /** Idempotent. */
  async close(): Promise<void> {
    await this.#server.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #authenticate(request: FastifyRequest, reply: FastifyReply): Promise<void> {
    const [, scheme, credentials = ''] =
      /^(\S+) (.*)$/.exec(request.headers.authorization ?? '') ?? [];
    const given = Buffer.from(credentials);
    const isEqual =
      given.length === this.#expected.length && timingSafeEqual(given, this.#expected);
    if (scheme?.toLowerCase() !== 'bearer' || !isEqual)
      await reply.code(401).send({ detail: 'Unauthorized' });
  }

  async #take(
    channel: CallbackChannel,
    request: FastifyRequest<{ Params: { id: string } }>,
    reply: FastifyReply,
  ): Promise<void> {
    const { id: rolloutId } = request.params;
    const text = typeof request.body === 'string' ? request.body : '';
    const key = request.headers['idempotency-key'];
    const fault = this.#options.onReceived?.({
      ...{ rolloutId, channel, text, at: new Date() },
      key: typeof key === 'string' ? key : null,
    });
    const answer =
      fault === undefined || fault.isTaken === true
        ? await this.#answer(rolloutId, channel, text)
        : null;
    if (fault === undefined) {
      await reply.code(answer?.status ?? 500).send(answer?.body);
    } else if (fault.status === null) {
      reply.hijack();
      request.raw.socket.destroy();
    } else {
      await reply
        .code(fault.status)
        .headers(fault.headers ?? {})
        .send({ detail: 'fault' });
    }
  }

  async #answer(
    rolloutId: string,
    channel: CallbackChannel,
    text: string,
  ): Promise<{ readonly status: number; readonly body: AckDocument }> {
    const document = documentOf(text);
    const problem = problemOf(rolloutId, channel, document);
    if (document === null || problem !== null)
      return { status: 422, body: { detail: problem ?? 'the body is no JSON object' } };
    try {
      const ack = await this.#options.rendezvous.receive(rolloutId, channel, document);
      if (ack === null) return { status: 404, body: { detail: 'unknown rollout_id' } };
      return { status: 200, body: ack };
    } catch {
      return { status: 500, body: { detail: 'the result could not be committed' } };
    }
  }
}

function documentOf(text: string): CallbackDocument | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as CallbackDocument)
      : null;
  } catch {
    return null;
  }
}

function problemOf(
  rolloutId: string,
  channel: CallbackChannel,
  document: CallbackDocument | null,
): string | null {
  if (rolloutIdProblem(rolloutId) !== null) return 'invalid rollout_id';
  const named = document?.['rollout_id'] ?? null;
  if (named !== null && named !== rolloutId) return 'rollout_id mismatch';
  if (document !== null && !endStatuses[channel].includes(document['status']))
    return `${channel} callback status must be terminal`;
  return null;
}
