/**
 * What stands between agents and the chat address that a controller names. Every rollout has a key of ours; what comes with it goes to the rollout's upstream
 * with the upstream's own key. Here are the routes and their life; how a call is served is `call-server.ts`.
 */
import { lookup as systemLookup } from 'node:dns';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { LookupFunction } from 'node:net';
import { Agent } from 'undici';
import { RolloutError } from '../core/errors.ts';
import type { ModelRoute } from '../wire/rollout/model-route.ts';
import type { RouteActivity } from '../wire/rollout/route-activity.ts';
import { joinedRules, noRules } from '../wire/rollout/route-rules.ts';
import { urlRefused } from '../wire/url-policy.ts';
import { RawConnections } from './agent/raw-connections.ts';
import type { CallUse } from './call-budget.ts';
import { deadKey } from './call-refusals.ts';
import { CallServer } from './call-server.ts';
import type { RouteCapture } from './capture/call-capture.ts';
import type { GatewayControl, RouteAbort, RouteRequest, UpstreamProbe } from './gateway-control.ts';
import type { ModelGatewayOptions } from './gateway-options.ts';
import { LiveRoute } from './live-route.ts';
import { RouteKeys } from './route-keys.ts';
import { RunningCalls } from './running-calls.ts';
import type { TokensMode } from './tokens/tokens-mode.ts';
import { UpstreamClient } from './upstream/upstream-client.ts';

export type { ModelGatewayOptions } from './gateway-options.ts';
export type { RelayedCall } from './call-progress.ts';

const upstreamSilenceMs = 30 * 60_000;

/** A route that a process held which has died. */
export interface HeldRoute {
  readonly request: RouteRequest;
  /** Of the key that its agent has: as `keyHashOf` gives it. */
  readonly keyHash: string;
  /** By calls that had ended. */
  readonly used: CallUse;
}

export class ModelGateway implements GatewayControl, AsyncDisposable {
  readonly #options: ModelGatewayOptions;
  readonly #keys = new RouteKeys<LiveRoute>();
  readonly #routes = new Map<string, LiveRoute>();
  readonly #calls: RunningCalls;
  /** Of routes whose calls were not asked for yet, by rollout. */
  readonly #captures = new Map<string, RouteCapture>();
  readonly #keptResponses = { bytes: 0 };
  /** Of relayed calls. */
  readonly #upstream: UpstreamClient;
  /** Of what else is asked of upstreams. */
  readonly #upstreams: Agent;
  readonly #lookup: LookupFunction;
  readonly #server: CallServer;
  #closing: Promise<void> | null = null;

  constructor(options: ModelGatewayOptions) {
    this.#options = options;
    this.#calls = new RunningCalls(options.clock);
    this.#lookup = options.policy.guard(options.lookup ?? systemLookup);
    this.#upstream = new UpstreamClient({ clock: options.clock, lookup: this.#lookup });
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
    this.#server = new CallServer(options, {
      ...{ keys: this.#keys, calls: this.#calls },
      ...{ upstream: this.#upstream, upstreams: this.#upstreams },
    });
  }

  /** Routes with a key that is alive. */
  get liveRoutes(): number {
    return this.#routes.size;
  }

  get runningCalls(): number {
    return this.#calls.size;
  }

  async register(request: RouteRequest): Promise<ModelRoute> {
    const { rolloutId } = request;
    const route = this.#routeOf(request, null);
    // The policy may be another than when the rollout was accepted.
    const problem = this.#options.policy.problem(request.upstreamUrl);
    if (problem !== null) throw urlRefused('chat_completions_url', problem);
    if (this.#routes.has(rolloutId)) await this.abort(rolloutId);
    await this.forget(rolloutId);
    this.#routes.set(rolloutId, route);
    if (route.capture !== null) this.#captures.set(rolloutId, route.capture);
    return { baseUrl: this.#options.baseUrl(), apiKey: this.#keys.add(rolloutId, route) };
  }

  /** A route goes on under the key that it has. What was captured of it stays as it is, with a gap at its end. */
  takeOver({ request, keyHash, used }: HeldRoute): void {
    const route = this.#routeOf(request, used);
    this.#routes.set(request.rolloutId, route);
    this.#keys.addHashed(request.rolloutId, keyHash, route);
  }

  revoke(rolloutId: string): Promise<void> {
    this.#keys.remove(rolloutId);
    this.#routes.get(rolloutId)?.close();
    this.#routes.delete(rolloutId);
    return Promise.resolve();
  }

  async abort(rolloutId: string): Promise<RouteAbort> {
    await this.revoke(rolloutId);
    const calls = this.#calls.of(rolloutId);
    const reason = new Error('the rollout was ended');
    for (const call of calls) call.end(reason, deadKey);
    await this.#calls.gone(rolloutId);
    return { callsEnded: calls.length };
  }

  async captured(rolloutId: string): Promise<string | null> {
    const { capture = null } = this.#options;
    if (capture === null) return null;
    const open = this.#captures.get(rolloutId);
    if (open !== undefined) {
      await this.#calls.gone(rolloutId);
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

  async left(): Promise<readonly string[]> {
    return (await this.#options.capture?.left()) ?? [];
  }

  activity(rolloutId: string): Promise<RouteActivity | null> {
    return Promise.resolve(this.#routes.get(rolloutId)?.activity ?? null);
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
    return this.#server.handle(request, response);
  }

  /** Reads the connections of a server before the server does. Whoever closes the server closes this first. */
  readConnections(server: Server): RawConnections {
    return new RawConnections(server, {
      clock: this.#options.clock,
      admit: (head) => this.#server.admit(head),
    });
  }

  /** Ends every call and closes the connections to upstreams. Idempotent. */
  close(): Promise<void> {
    return (this.#closing ??= this.#close());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #close(): Promise<void> {
    const ids = new Set([...this.#routes.keys(), ...this.#calls.rollouts]);
    await Promise.all([...ids].map((id) => this.abort(id)));
    await Promise.all([...this.#captures.values()].map((capture) => capture.close()));
    this.#upstream.destroy();
    await this.#upstreams.destroy(new Error('the gateway closes'));
  }

  /** null = it is relayed. */
  #tokensFor({ mode }: RouteRequest): TokensMode | null {
    const { tokens = null } = this.#options;
    const isWanted = mode === undefined ? tokens?.isDefault === true : mode === 'tokens';
    if (!isWanted || tokens !== null) return isWanted ? tokens : null;
    throw new RolloutError('CONFIG_INVALID', 'prompts cannot be made of ids here', {
      ...{ phase: 'model-call', field: 'gateway.mode' },
      remedy: 'Set sessions.tokenizer, sessions.family and gateway.mode = "tokens".',
    });
  }

  #routeOf(request: RouteRequest, usedBefore: CallUse | null): LiveRoute {
    const { clock, openEngine, capture = null, rules = noRules } = this.#options;
    const tokens = this.#tokensFor(request);
    return new LiveRoute(request, {
      ...{ clock, capture, usedBefore, tokens },
      maxCalls: this.#options.maxCallsPerRollout ?? 64,
      rules: joinedRules(rules, request.rules ?? noRules),
      keptResponses: this.#keptResponses,
      openEngine: (upstream) =>
        openEngine({
          ...{ ...upstream, lookup: this.#lookup },
          stallMs: this.#options.upstreamSilenceMs ?? upstreamSilenceMs,
        }),
    });
  }
}
