/**
 * The relay between agents and the chat address that a controller names. Every rollout has a key of ours; what comes with it goes to the rollout's
 * upstream with the upstream's own key, and bytes go through as they come, both ways. A key that is not known is refused before anything else of
 * the request is looked at.
 */
import { lookup as systemLookup } from 'node:dns';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { LookupFunction } from 'node:net';
import { Agent } from 'undici';
import type { Clock } from '../core/clock.ts';
import { errorRegistry } from '../core/error-registry.ts';
import { messageOf } from '../core/errors.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import type { Logger } from '../core/logger.ts';
import type { ModelRoute } from '../wire/rollout/model-route.ts';
import type { RouteActivity } from '../wire/rollout/route-activity.ts';
import { urlRefused, type UrlPolicy } from '../wire/url-policy.ts';
import type { GatewayControl, RouteAbort, RouteRequest, UpstreamProbe } from './gateway-control.ts';
import { sendError, type GatewayError } from './gateway-error.ts';
import { LiveRoute } from './live-route.ts';
import { RelayCall, type RelayedCall } from './relay-call.ts';
import { callOf, type GatewayCall } from './relay-request.ts';
import { RouteKeys } from './route-keys.ts';

export type { RelayedCall } from './relay-call.ts';

export interface ChatRelayOptions {
  /** Where the data server listens, with `/v1`; asked at every registration, since a port may be chosen by the system. */
  readonly baseUrl: () => string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Which upstreams are allowed, by address and, when a connection is made, by what their names resolve to. */
  readonly policy: UrlPolicy;
  /** Default: the system's. */
  readonly lookup?: LookupFunction;
  /** Calls of one rollout at the same time; more are answered 429. Default 64. */
  readonly maxCallsPerRollout?: number;
  /** Of a request. Default 64 MiB. */
  readonly bodyLimitBytes?: number;
  /** An observer: what it throws is logged. */
  readonly onCall?: (call: RelayedCall) => void;
}

/** An abort waits no longer for connections to be gone. */
const abortBoundMs = 1_000;
const mebibyte = 1024 * 1024;

export class ChatRelay implements GatewayControl, AsyncDisposable {
  readonly #options: ChatRelayOptions;
  readonly #maxCalls: number;
  readonly #bodyLimitBytes: number;
  readonly #keys = new RouteKeys<LiveRoute>();
  readonly #routes = new Map<string, LiveRoute>();
  /** Running calls by rollout, those of revoked routes included. */
  readonly #calls = new Map<string, Set<RelayCall>>();
  readonly #upstreams: Agent;
  #closing: Promise<void> | null = null;

  constructor(options: ChatRelayOptions) {
    this.#options = options;
    this.#maxCalls = options.maxCallsPerRollout ?? 64;
    this.#bodyLimitBytes = options.bodyLimitBytes ?? 64 * mebibyte;
    // As for engines: no limit of connections, no time limit of its own, idle connections shorter than uvicorn keeps them.
    this.#upstreams = new Agent({
      connections: null,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      allowH2: false,
      keepAliveTimeout: 4_000,
      keepAliveMaxTimeout: 4_000,
      connect: {
        ...{ timeout: 10_000, keepAlive: true, keepAliveInitialDelay: 30_000 },
        lookup: options.policy.guard(options.lookup ?? systemLookup),
      },
    });
  }

  /** Routes with a key that is alive. */
  get liveRoutes(): number {
    return this.#routes.size;
  }

  get runningCalls(): number {
    let running = 0;
    for (const calls of this.#calls.values()) running += calls.size;
    return running;
  }

  async register(request: RouteRequest): Promise<ModelRoute> {
    const route = new LiveRoute(request, this.#options.clock);
    // The policy may be another than when the rollout was accepted.
    const problem = this.#options.policy.problem(request.upstreamUrl);
    if (problem !== null) throw urlRefused('chat_completions_url', problem);
    if (this.#routes.has(request.rolloutId)) await this.abort(request.rolloutId);
    this.#routes.set(request.rolloutId, route);
    return {
      baseUrl: this.#options.baseUrl(),
      apiKey: this.#keys.add(request.rolloutId, route),
    };
  }

  revoke(rolloutId: string): Promise<void> {
    this.#keys.remove(rolloutId);
    this.#routes.delete(rolloutId);
    return Promise.resolve();
  }

  async abort(rolloutId: string): Promise<RouteAbort> {
    await this.revoke(rolloutId);
    const calls = [...(this.#calls.get(rolloutId) ?? [])];
    const reason = new Error('the rollout was ended');
    for (const call of calls) call.end(reason, deadKey);
    if (calls.length > 0) {
      using bound = new LinkedAbort([]);
      const late = this.#options.clock.sleep(abortBoundMs, bound.signal).catch(() => undefined);
      await Promise.race([Promise.all(calls.map((call) => call.gone)), late]);
      bound.abort(new Error('the calls are gone'));
    }
    return { callsEnded: calls.length };
  }

  activity(rolloutId: string): RouteActivity | null {
    return this.#routes.get(rolloutId)?.activity ?? null;
  }

  async probe(rolloutId: string, signal: AbortSignal): Promise<UpstreamProbe | null> {
    const route = this.#routes.get(rolloutId);
    if (route === undefined) return null;
    const { endpoint, authorization } = route;
    const sinceMs = this.#options.clock.monotonicMs();
    const status = await this.#upstreams
      .request({
        ...{ origin: endpoint.origin, path: endpoint.pathTo('/models'), method: 'GET', signal },
        headers: authorization === null ? {} : { authorization },
      })
      .then(async ({ statusCode, body }) => {
        await body.dump();
        return statusCode;
      })
      .catch(() => null);
    return { status, ms: this.#options.clock.monotonicMs() - sinceMs };
  }

  /** Takes the request when its path is one of the gateway's; false = not ours, nothing was touched. Never throws. */
  handle(request: IncomingMessage, response: ServerResponse): boolean {
    const call = callOf(request);
    if (call === null) return false;
    try {
      this.#serve(call, request, response);
    } catch (error) {
      this.#options.logger.log('error', 'a model call failed in the gateway', {
        error: messageOf(error),
      });
      if (response.headersSent) response.destroy();
      else this.#refuse({ status: 500, code: 'INTERNAL', message: 'a defect' }, request, response);
    }
    return true;
  }

  /** Ends every call and closes the connections to upstreams. Idempotent. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    const ids = new Set([...this.#routes.keys(), ...this.#calls.keys()]);
    await Promise.all([...ids].map((id) => this.abort(id)));
    await this.#upstreams.destroy(new Error('the gateway closes'));
  }

  #serve(call: GatewayCall, request: IncomingMessage, response: ServerResponse): void {
    const { key } = call;
    if (typeof key !== 'string') {
      this.#refuse({ ...unauthorized, message: key.problem }, request, response);
      return;
    }
    const route = this.#keys.find(key);
    const refusal = route === null ? deadKey : this.#refusalOf(call, request, route);
    if (route === null || refusal !== null) {
      this.#refuse(refusal ?? deadKey, request, response);
      return;
    }
    const relayed = new RelayCall({
      ...{ route, request, response, ownKey: key, suffix: call.suffix },
      clock: this.#options.clock,
      bodyLimitBytes: this.#bodyLimitBytes,
      onRefusal: (status, message) => this.#noteRefusal(route, status, message),
      onEnd: (ended) => this.#ended(relayed, ended),
    });
    this.#begun(route.rolloutId, relayed);
    relayed.send(this.#upstreams);
  }

  #refusalOf(call: GatewayCall, request: IncomingMessage, route: LiveRoute): GatewayError | null {
    if (request.method !== call.method)
      return {
        ...{ status: 405, code: 'method_not_allowed', message: `${call.method} is expected` },
        headers: { allow: call.method },
      };
    if (Number(request.headers['content-length'] ?? 0) > this.#bodyLimitBytes)
      return {
        ...{ status: 413, code: 'BODY_TOO_LARGE' },
        message: `the request is larger than ${this.#bodyLimitBytes} bytes`,
      };
    if (route.calls.size >= this.#maxCalls)
      return {
        ...{ status: 429, code: 'too_many_calls', headers: { 'retry-after': '1' } },
        message: `${this.#maxCalls} calls of this rollout are under way`,
      };
    return null;
  }

  /** What is left of the request is read and forgotten, up to the limit: an answer is lost where a connection closes on unread bytes. */
  #refuse(error: GatewayError, request: IncomingMessage, response: ServerResponse): void {
    sendError(response, error);
    let left = this.#bodyLimitBytes;
    request.on('data', (chunk: Buffer) => {
      left -= chunk.length;
      if (left < 0) request.destroy();
    });
  }

  #begun(rolloutId: string, call: RelayCall): void {
    const calls = this.#calls.get(rolloutId);
    if (calls === undefined) this.#calls.set(rolloutId, new Set([call]));
    else calls.add(call);
  }

  #ended(call: RelayCall, ended: RelayedCall): void {
    const calls = this.#calls.get(ended.rolloutId);
    calls?.delete(call);
    if (calls?.size === 0) this.#calls.delete(ended.rolloutId);
    try {
      this.#options.onCall?.(ended);
    } catch (error) {
      this.#options.logger.log('warn', 'an observer of model calls failed', {
        error: messageOf(error),
      });
    }
  }

  #noteRefusal(route: LiveRoute, status: number | null, message: string): void {
    const count = route.refused(status, message);
    // The first of a row is news; of those that follow, fewer and fewer.
    if (!Number.isInteger(Math.log2(count))) return;
    this.#options.logger.log('warn', 'the upstream refuses model calls', {
      ...{ rolloutId: route.rolloutId, status, count },
      message: route.withoutSecrets(message),
    });
  }
}

const unauthorized = {
  status: errorRegistry.ROUTE_KEY_INVALID.httpStatus,
  code: 'ROUTE_KEY_INVALID',
} as const;

const deadKey: GatewayError = {
  ...unauthorized,
  message: 'the key is of no rollout that is running',
};
