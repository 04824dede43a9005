/**
 * What stands between agents and the chat address that a controller names. Every rollout has a key of ours; what comes with it goes to the rollout's upstream
 * with the upstream's own key: chat completions as bytes, both ways, other dialects turned into chat completions and back. A key that is not known is
 * refused before anything else of the request is looked at.
 */
import { randomUUID } from 'node:crypto';
import { lookup as systemLookup } from 'node:dns';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { LookupFunction } from 'node:net';
import { Agent } from 'undici';
import type { Clock } from '../core/clock.ts';
import { errorRegistry } from '../core/error-registry.ts';
import { messageOf } from '../core/errors.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import type { EngineKind, EngineOpener } from '../engines/engine.ts';
import type { Logger } from '../core/logger.ts';
import type { ModelRoute } from '../wire/rollout/model-route.ts';
import type { RouteActivity } from '../wire/rollout/route-activity.ts';
import { joinedRules, noRules, type RouteRules } from '../wire/rollout/route-rules.ts';
import { urlRefused, type UrlPolicy } from '../wire/url-policy.ts';
import type { GatewayControl, RouteAbort, RouteRequest, UpstreamProbe } from './gateway-control.ts';
import type { CallKind } from './call-budget.ts';
import type { CallCapture, RouteCapture } from './capture/call-capture.ts';
import { RelayCapture } from './capture/relay-capture.ts';
import { TranslatedCapture } from './capture/translated-capture.ts';
import { countTokens } from './count-tokens.ts';
import type { Dialect } from './dialects/dialect.ts';
import { countTokensDialect } from './dialects/messages/count-tokens.ts';
import { messagesDialect } from './dialects/messages/messages-dialect.ts';
import { responsesDialect } from './dialects/responses/responses-dialect.ts';
import { bodyTooLarge, sendError, sendProblem, type GatewayError } from './gateway-error.ts';
import { LiveRoute } from './live-route.ts';
import { ownProblem } from './problems.ts';
import { RelayCall, type RelayedCall } from './relay-call.ts';
import { callOf, isGreeting, type GatewayCall, type GatewayTarget } from './relay-request.ts';
import { RouteKeys } from './route-keys.ts';
import { TranslatedCall } from './translated-call.ts';

export type { RelayedCall } from './relay-call.ts';

export interface ModelGatewayOptions {
  /** Where the data server listens, with `/v1`; asked at every registration, since a port may be chosen by the system. */
  readonly baseUrl: () => string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Which upstreams are allowed, by address and, when a connection is made, by what their names resolve to. */
  readonly policy: UrlPolicy;
  /** For calls whose dialect is not the upstream's. */
  readonly openEngine: EngineOpener;
  /** Default: the system's. */
  readonly lookup?: LookupFunction;
  /** Calls of one rollout at the same time; more are answered 429. Default 64. */
  readonly maxCallsPerRollout?: number;
  /** Keeps what goes up and what comes down; null = nothing is kept. Default null. */
  readonly capture?: CallCapture | null;
  /** What upstreams are known to be: engines that tell ids and log-probabilities are asked for them when calls are captured. Default `chat`: nothing is known. */
  readonly engineKind?: EngineKind;
  /** Of every rollout, beside its own. */
  readonly rules?: RouteRules;
  /** Of a request. Default 64 MiB. */
  readonly bodyLimitBytes?: number;
  /** A translated answer that is silent for this long sends a sign of life. Default 12 s: some clients give up after 15. */
  readonly keepAliveMs?: number;
  /** Of a translated call: signs of life would hide an upstream that is dead. Default 30 min. */
  readonly upstreamSilenceMs?: number;
  /** An observer: what it throws is logged. */
  readonly onCall?: (call: RelayedCall) => void;
}

/** An abort waits no longer for connections to be gone. */
const abortBoundMs = 1_000;
const mebibyte = 1024 * 1024;
const keepAliveMs = 12_000;
const upstreamSilenceMs = 30 * 60_000;

const dialects = { responses: responsesDialect, messages: messagesDialect };

type RunningCall = RelayCall | TranslatedCall;

export class ModelGateway implements GatewayControl, AsyncDisposable {
  readonly #options: ModelGatewayOptions;
  readonly #maxCalls: number;
  readonly #bodyLimitBytes: number;
  readonly #keys = new RouteKeys<LiveRoute>();
  readonly #routes = new Map<string, LiveRoute>();
  /** Running calls by rollout, those of revoked routes included. */
  readonly #calls = new Map<string, Set<RunningCall>>();
  /** Of routes whose calls were not asked for yet, by rollout. */
  readonly #captures = new Map<string, RouteCapture>();
  readonly #keptResponses = { bytes: 0 };
  readonly #upstreams: Agent;
  readonly #lookup: LookupFunction;
  #closing: Promise<void> | null = null;

  constructor(options: ModelGatewayOptions) {
    this.#options = options;
    this.#maxCalls = options.maxCallsPerRollout ?? 64;
    this.#bodyLimitBytes = options.bodyLimitBytes ?? 64 * mebibyte;
    this.#lookup = options.policy.guard(options.lookup ?? systemLookup);
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
        lookup: this.#lookup,
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
    const { clock, openEngine, rules = noRules, capture = null } = this.#options;
    const route = new LiveRoute(request, {
      ...{ clock, capture, maxCalls: this.#maxCalls },
      rules: joinedRules(rules, request.rules ?? noRules),
      keptResponses: this.#keptResponses,
      openEngine: (upstream) =>
        openEngine({
          ...{ ...upstream, kind: 'chat', lookup: this.#lookup },
          stallMs: this.#options.upstreamSilenceMs ?? upstreamSilenceMs,
        }),
    });
    // The policy may be another than when the rollout was accepted.
    const problem = this.#options.policy.problem(request.upstreamUrl);
    if (problem !== null) throw urlRefused('chat_completions_url', problem);
    if (this.#routes.has(request.rolloutId)) await this.abort(request.rolloutId);
    await this.forget(request.rolloutId);
    this.#routes.set(request.rolloutId, route);
    if (route.capture !== null) this.#captures.set(request.rolloutId, route.capture);
    return {
      baseUrl: this.#options.baseUrl(),
      apiKey: this.#keys.add(request.rolloutId, route),
    };
  }

  revoke(rolloutId: string): Promise<void> {
    this.#keys.remove(rolloutId);
    this.#routes.get(rolloutId)?.close();
    this.#routes.delete(rolloutId);
    return Promise.resolve();
  }

  async abort(rolloutId: string): Promise<RouteAbort> {
    await this.revoke(rolloutId);
    const calls = [...(this.#calls.get(rolloutId) ?? [])];
    const reason = new Error('the rollout was ended');
    for (const call of calls) call.end(reason, deadKey);
    await this.#callsGone(calls);
    return { callsEnded: calls.length };
  }

  async captured(rolloutId: string): Promise<string | null> {
    const { capture = null } = this.#options;
    if (capture === null) return null;
    const open = this.#captures.get(rolloutId);
    if (open !== undefined) {
      await this.#callsGone([...(this.#calls.get(rolloutId) ?? [])]);
      await open.close();
      if (this.#captures.get(rolloutId) === open) this.#captures.delete(rolloutId);
    }
    return await capture.fileOf(rolloutId);
  }

  async forget(rolloutId: string): Promise<void> {
    const open = this.#captures.get(rolloutId);
    this.#captures.delete(rolloutId);
    await open?.close();
    await this.#options.capture?.forget(rolloutId);
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
    if (isGreeting(request)) {
      response.writeHead(200).end();
      return true;
    }
    const call = callOf(request);
    if (call === null) return false;
    try {
      this.#serve(call, request, response);
    } catch (error) {
      this.#defect(error);
      if (response.headersSent) response.destroy();
      else {
        const error = { status: 500, code: 'INTERNAL', message: 'a defect' };
        this.#refuse(error, { request, response, dialect: dialectOf(call.target) });
      }
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
    await Promise.all([...this.#captures.values()].map((capture) => capture.close()));
    await this.#upstreams.destroy(new Error('the gateway closes'));
  }

  #serve(call: GatewayCall, request: IncomingMessage, response: ServerResponse): void {
    const { key, target } = call;
    const dialect = dialectOf(target);
    const refuse = (error: GatewayError): void =>
      this.#refuse(error, { request, response, dialect });
    if (typeof key !== 'string') {
      refuse({ ...unauthorized, message: key.problem });
      return;
    }
    const route = this.#keys.find(key);
    const refusal = route === null ? deadKey : this.#refusalOf(call, request, route);
    if (route === null || refusal !== null) {
      refuse(refusal ?? deadKey);
      return;
    }
    const parts = {
      ...{ route, request, response, clock: this.#options.clock },
      share: route.budget.begin(kindOf(target)),
      bodyLimitBytes: this.#bodyLimitBytes,
      onNotes: (notes: readonly string[]) => this.#note(route, notes),
      onRefusal: (status: number | null, message: string) =>
        this.#noteRefusal(route, status, message),
      onEnd: (ended: RelayedCall) => this.#ended(running, ended),
    };
    const running: RunningCall =
      target.kind === 'relay'
        ? new RelayCall({
            ...{ ...parts, ownKey: key, suffix: target.suffix },
            pins: target.suffix === '/models' ? null : route.pins,
            capture: target.suffix === '/models' ? null : this.#relayCapture(route, request),
          })
        : new TranslatedCall({
            ...parts,
            dialect: target.kind === 'count-tokens' ? countTokensDialect : dialects[target.dialect],
            count:
              target.kind === 'count-tokens'
                ? (prompt, signal) =>
                    countTokens(prompt, { route, signal, upstream: this.#upstreams })
                : null,
            capture: this.#translatedCapture(route, request, target.dialect),
            keepAliveMs: this.#options.keepAliveMs ?? keepAliveMs,
            onDefect: (error) => this.#defect(error),
          });
    this.#begun(route.rolloutId, running);
    if (running instanceof RelayCall) running.send(this.#upstreams);
    else running.send();
  }

  #relayCapture(route: LiveRoute, { headers }: IncomingMessage): RelayCapture | null {
    const { engineKind: kind = 'chat' } = this.#options;
    if (route.capture === null) return null;
    const { url } = route.endpoint;
    return new RelayCapture({
      ...{ route: route.capture, kind, client: headers['user-agent'] ?? null },
      at: { url, requestId: randomUUID(), secrets: route.secrets },
    });
  }

  #translatedCapture(
    route: LiveRoute,
    { headers }: IncomingMessage,
    dialect: 'responses' | 'messages',
  ): TranslatedCapture | null {
    const { engineKind: kind = 'chat' } = this.#options;
    if (route.capture === null) return null;
    const client = headers['user-agent'] ?? null;
    return new TranslatedCapture({ route: route.capture, kind, client, dialect });
  }

  #refusalOf(call: GatewayCall, request: IncomingMessage, route: LiveRoute): GatewayError | null {
    if (request.method !== call.method)
      return {
        ...{ status: 405, code: 'method_not_allowed', message: `${call.method} is expected` },
        headers: { allow: call.method },
      };
    if (Number(request.headers['content-length'] ?? 0) > this.#bodyLimitBytes)
      return bodyTooLarge(this.#bodyLimitBytes);
    if (call.target.kind === 'missing')
      return { status: 404, code: 'not_found', message: `${request.url ?? ''} is not offered` };
    const now = this.#options.clock.now();
    const refusal = route.budget.refusal(kindOf(call.target), { running: route.calls.size, now });
    const { spent } = route.budget;
    if (refusal !== null && spent?.refused === 1 && spent.at === now)
      this.#options.logger.log('warn', 'a budget of the rollout is used up', {
        ...{ rolloutId: route.rolloutId, limit: spent.limit, max: spent.max, used: spent.used },
      });
    return refusal;
  }

  /** What is left of the request is read and forgotten, up to the limit: an answer is lost where a connection closes on unread bytes. */
  #refuse(error: GatewayError, { request, response, dialect }: Refused): void {
    if (dialect === null) sendError(response, error);
    else sendProblem(response, dialect.problem(ownProblem(error), randomUUID()));
    let left = this.#bodyLimitBytes;
    request.on('data', (chunk: Buffer) => {
      left -= chunk.length;
      if (left < 0) request.destroy();
    });
  }

  /** Within the bound of an abort. */
  async #callsGone(calls: readonly RunningCall[]): Promise<void> {
    if (calls.length === 0) return;
    using bound = new LinkedAbort([]);
    const late = this.#options.clock.sleep(abortBoundMs, bound.signal).catch(() => undefined);
    await Promise.race([Promise.all(calls.map((call) => call.gone)), late]);
    bound.abort(new Error('the calls are gone'));
  }

  #begun(rolloutId: string, call: RunningCall): void {
    const calls = this.#calls.get(rolloutId);
    if (calls === undefined) this.#calls.set(rolloutId, new Set([call]));
    else calls.add(call);
  }

  #ended(call: RunningCall, ended: RelayedCall): void {
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

  #defect(error: unknown): void {
    this.#options.logger.log('error', 'a model call failed in the gateway', {
      error: messageOf(error),
    });
  }

  /** What a client sends with every request is told once. */
  #note(route: LiveRoute, notes: readonly string[]): void {
    for (const note of route.fresh(notes))
      this.#options.logger.log('info', 'a model call was not taken as it came', {
        ...{ rolloutId: route.rolloutId, note },
      });
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

interface Refused {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** null = the upstream's own. */
  readonly dialect: Dialect | null;
}

function dialectOf(target: GatewayTarget): Dialect | null {
  return target.kind === 'relay' ? null : dialects[target.dialect];
}

function kindOf(target: GatewayTarget): CallKind {
  if (target.kind === 'count-tokens') return 'counting';
  const isSampling =
    target.kind === 'translate' || (target.kind === 'relay' && target.suffix !== '/models');
  return isSampling ? 'sampling' : 'other';
}

const unauthorized = {
  status: errorRegistry.ROUTE_KEY_INVALID.httpStatus,
  code: 'ROUTE_KEY_INVALID',
} as const;

const deadKey: GatewayError = {
  ...unauthorized,
  message: 'the key is of no rollout that is running',
};
