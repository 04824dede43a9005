/**
 * The Engine API of Docker (and of podman's service) over node:http. Plain calls share a keep-alive agent; attached execs take over
 * their own connection. Everything thrown here is an `EngineError`, a system error or the reason of the caller's signal:
 * whoever knows what was being done maps it with `engineFailure`.
 */
import { Agent, request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import { Agent as TlsAgent, request as httpsRequest } from 'node:https';
import type { Duplex, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { LinkedAbort } from '../../../core/linked-abort.ts';
import { RolloutError } from '../../../core/errors.ts';
import type { EngineEndpoint } from './engine-endpoint.ts';
import { EngineError } from './engine-error.ts';

export type EngineMethod = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'DELETE';

export interface EngineCall {
  readonly method: EngineMethod;
  /** Without the version, for example `/containers/json`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent as `application/x-tar`. */
  readonly tar?: Readable;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** Bound on the whole call when nothing is streamed; default 60 s. */
  readonly timeoutMs?: number;
}

const newestVersion = [1, 45] as const;
const maxErrorBytes = 64 * 1024;

export class EngineClient {
  readonly #endpoint: EngineEndpoint;
  readonly #agent: Agent;
  #prefix = '';

  constructor(endpoint: EngineEndpoint) {
    this.#endpoint = endpoint;
    const settings = { keepAlive: true, maxSockets: 64, maxFreeSockets: 8 };
    this.#agent =
      endpoint.kind === 'tcp' && endpoint.tls !== null
        ? new TlsAgent({ ...settings, ...endpoint.tls })
        : new Agent(settings);
  }

  /** Agrees on a version of the API with the daemon. */
  async negotiate(signal: AbortSignal): Promise<void> {
    const response = await this.stream({ method: 'GET', path: '/_ping', signal });
    response.resume();
    const [major = 1, minor = 41] = String(response.headers['api-version'] ?? '1.41')
      .split('.')
      .map(Number);
    const isOlder = major < newestVersion[0] || minor < newestVersion[1];
    this.#prefix = `/v${(isOlder ? [major, minor] : newestVersion).join('.')}`;
  }

  /** A call with a JSON answer (undefined when there is none). */
  async json(call: EngineCall): Promise<unknown> {
    const ms = call.timeoutMs ?? 60_000;
    using limit = new LinkedAbort([call.signal], { ms, reason: () => silent(call, ms) });
    const response = await this.stream({ ...call, signal: limit.signal });
    const text = await readAll(response, Number.POSITIVE_INFINITY, limit.signal);
    return text.trim() === '' ? undefined : (JSON.parse(text) as unknown);
  }

  /** A call whose answer is read as it comes. Resolves with the headers; rejects with EngineError for a status of 400 and more. */
  async stream(call: EngineCall): Promise<IncomingMessage> {
    call.signal.throwIfAborted();
    const body = call.json === undefined ? undefined : JSON.stringify(call.json);
    const request = this.#request(call, {
      ...(body === undefined
        ? {}
        : {
            'content-type': 'application/json',
            'content-length': String(Buffer.byteLength(body)),
          }),
      ...(call.tar === undefined ? {} : { 'content-type': 'application/x-tar' }),
    });
    const answered = answerTo(request, call.signal);
    if (call.tar === undefined) request.end(body);
    else
      void pipeline(call.tar, request).catch((error: unknown) => request.destroy(error as Error));
    const { response } = await answered;
    if (response === null) throw new EngineError(500, 'the engine changed the protocol unasked');
    if ((response.statusCode ?? 500) < 400) return response;
    const isHead = call.method === 'HEAD';
    const text = isHead ? '' : await readAll(response, maxErrorBytes, call.signal);
    if (isHead) response.resume();
    throw new EngineError(response.statusCode ?? 500, messageIn(text));
  }

  /** Starts an exec or attach and takes the connection over: writes go to its input, reads are multiplexed frames. */
  async upgrade(call: EngineCall): Promise<Duplex> {
    call.signal.throwIfAborted();
    const body = JSON.stringify(call.json ?? {});
    const request = this.#request(
      call,
      {
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(body)),
        connection: 'Upgrade',
        upgrade: 'tcp',
      },
      { ownConnection: true },
    );
    const answered = answerTo(request, call.signal);
    request.end(body);
    const { response, socket } = await answered;
    if (socket !== null) return socket;
    const text = await readAll(response, maxErrorBytes, call.signal);
    throw new EngineError(response.statusCode ?? 500, messageIn(text));
  }

  close(): void {
    this.#agent.destroy();
  }

  #request(
    call: EngineCall,
    headers: Record<string, string>,
    options: { readonly ownConnection?: boolean } = {},
  ): ClientRequest {
    const query = new URLSearchParams();
    for (const [key, value] of Object.entries(call.query ?? {}))
      if (value !== undefined) query.set(key, String(value));
    const search = query.size === 0 ? '' : `?${query.toString()}`;
    const common = {
      method: call.method,
      path: `${this.#prefix}${call.path}${search}`,
      headers: { host: 'docker', ...headers, ...call.headers },
      agent: options.ownConnection === true ? (false as const) : this.#agent,
    };
    if (this.#endpoint.kind === 'unix')
      return httpRequest({ ...common, socketPath: this.#endpoint.socketPath });
    const { host, port, tls } = this.#endpoint;
    return tls === null
      ? httpRequest({ ...common, host, port })
      : httpsRequest({ ...common, host, port, ...tls });
  }
}

type Answer =
  | { readonly response: IncomingMessage; readonly socket: null }
  | { readonly response: null; readonly socket: Duplex };

/** The head of the answer. The signal also ends the body while it is read. */
function answerTo(request: ClientRequest, signal: AbortSignal): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      request.destroy(signal.reason as Error);
      reject(signal.reason as Error);
    };
    const detach = (): void => signal.removeEventListener('abort', stop);
    signal.addEventListener('abort', stop, { once: true });
    request.on('error', (error) => {
      detach();
      reject(error);
    });
    request.on('response', (response) => {
      response.once('close', detach);
      resolve({ response, socket: null });
    });
    request.on('upgrade', (_response, socket, head) => {
      detach();
      if (head.length > 0) socket.unshift(head);
      resolve({ response: null, socket });
    });
  });
}

async function readAll(
  response: IncomingMessage,
  limit: number,
  signal: AbortSignal,
): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length;
      if (size <= limit) chunks.push(chunk);
    }
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  }
  return Buffer.concat(chunks).toString('utf8');
}

function messageIn(text: string): string {
  try {
    const parsed = JSON.parse(text) as { readonly message?: unknown; readonly cause?: unknown };
    if (typeof parsed.message === 'string') return parsed.message;
  } catch {
    // Not JSON: a proxy in between, or an empty body.
  }
  return text.trim().slice(0, 1000) || 'no message';
}

function silent(call: EngineCall, ms: number): RolloutError {
  return new RolloutError(
    'ENVIRONMENT_UNAVAILABLE',
    `the engine did not answer ${call.method} ${call.path} in ${ms} ms`,
    {
      phase: 'environment',
      retryable: true,
      remedy: 'Look whether the Docker daemon hangs or the host is overloaded.',
    },
  );
}
