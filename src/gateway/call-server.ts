/**
 * Takes calls in: whose it is, whether it may be, and then the way it goes. Chat completions are relayed as bytes, other dialects are translated. A key that is
 * not known is refused before anything else of the request is looked at.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Agent } from 'undici';
import {
  deadKey,
  kindOf,
  refusalByBudget,
  refusalOfForm,
  refuse,
  unauthorized,
  type CameIn,
} from './call-refusals.ts';
import { RelayCapture } from './capture/relay-capture.ts';
import { TranslatedCapture } from './capture/translated-capture.ts';
import { countTokens } from './count-tokens.ts';
import type { Dialect } from './dialects/dialect.ts';
import { countTokensDialect } from './dialects/messages/count-tokens.ts';
import { messagesDialect } from './dialects/messages/messages-dialect.ts';
import { responsesDialect } from './dialects/responses/responses-dialect.ts';
import type { GatewayError } from './gateway-error.ts';
import type { ModelGatewayOptions } from './gateway-options.ts';
import type { LiveRoute } from './live-route.ts';
import { RelayCall, type RelayCallParts, type RelayedCall } from './relay-call.ts';
import { callOf, isGreeting, type GatewayCall, type GatewayTarget } from './relay-request.ts';
import type { RouteKeys } from './route-keys.ts';
import { RouteNotes } from './route-notes.ts';
import type { RunningCall, RunningCalls } from './running-calls.ts';
import { TranslatedCall } from './translated-call.ts';

const mebibyte = 1024 * 1024;
const usualKeepAliveMs = 12_000;

const dialects = { responses: responsesDialect, messages: messagesDialect };

export interface CallServerParts {
  readonly keys: Pick<RouteKeys<LiveRoute>, 'find'>;
  readonly calls: RunningCalls;
  readonly upstreams: Agent;
}

type CommonParts = Omit<RelayCallParts, 'suffix' | 'ownKey' | 'pins' | 'capture'>;

export class CallServer {
  readonly #options: ModelGatewayOptions;
  readonly #parts: CallServerParts;
  readonly #bodyLimitBytes: number;
  readonly #notes: RouteNotes;

  constructor(options: ModelGatewayOptions, parts: CallServerParts) {
    this.#options = options;
    this.#parts = parts;
    this.#bodyLimitBytes = options.bodyLimitBytes ?? 64 * mebibyte;
    this.#notes = new RouteNotes(options.logger);
  }

  /** Takes the request when its path is one of the gateway's; false = not ours, nothing was touched. Never throws. */
  handle(request: IncomingMessage, response: ServerResponse): boolean {
    if (isGreeting(request)) {
      response.writeHead(200).end();
      return true;
    }
    const call = callOf(request);
    if (call === null) return false;
    const came = { request, response, bodyLimitBytes: this.#bodyLimitBytes };
    try {
      this.#serve(call, came);
    } catch (error) {
      this.#notes.defect(error);
      if (response.headersSent) response.destroy();
      else refuse(ownDefect, came, dialectOf(call.target));
    }
    return true;
  }

  #serve(call: GatewayCall, came: CameIn): void {
    const { key, target } = call;
    const refused = (error: GatewayError): void => refuse(error, came, dialectOf(target));
    if (typeof key !== 'string') {
      refused({ ...unauthorized, message: key.problem });
      return;
    }
    const route = this.#parts.keys.find(key);
    if (route === null) {
      refused(deadKey);
      return;
    }
    const refusal = refusalOfForm(call, came) ?? this.#refusalByBudget(target, route);
    if (refusal !== null) refused(refusal);
    else this.#begin({ target, key, route }, came);
  }

  #refusalByBudget(target: GatewayTarget, route: LiveRoute): GatewayError | null {
    return refusalByBudget(kindOf(target), route, {
      now: this.#options.clock.now(),
      onSpent: () => this.#notes.spent(route),
    });
  }

  #begin(
    { target, key, route }: { target: GatewayTarget; key: string; route: LiveRoute },
    came: CameIn,
  ): void {
    const { calls, upstreams } = this.#parts;
    const parts: CommonParts = {
      ...{ ...came, route, clock: this.#options.clock },
      share: route.budget.begin(kindOf(target)),
      onNotes: (notes) => this.#notes.leftOut(route, notes),
      onRefusal: (status, message) => this.#notes.refusal(route, status, message),
      onEnd: (ended) => this.#ended(running, ended, route),
    };
    const running =
      target.kind === 'relay'
        ? this.#relayed(parts, { key, suffix: target.suffix })
        : this.#translated(parts, target);
    calls.begun(route.rolloutId, running);
    if (running instanceof RelayCall) running.send(upstreams);
    else running.send();
  }

  #relayed(
    parts: CommonParts,
    { key, suffix }: { readonly key: string; readonly suffix: RelayCallParts['suffix'] },
  ): RelayCall {
    const { route, request } = parts;
    const isSampling = suffix !== '/models';
    return new RelayCall({
      ...{ ...parts, ownKey: key, suffix },
      pins: isSampling ? route.pins : null,
      capture: isSampling ? this.#relayCapture(route, request) : null,
    });
  }

  #translated(
    parts: CommonParts,
    { kind, dialect }: Exclude<GatewayTarget, { readonly kind: 'relay' }>,
  ): TranslatedCall {
    const { route, request } = parts;
    const isCounting = kind === 'count-tokens';
    const { upstreams } = this.#parts;
    return new TranslatedCall({
      ...parts,
      dialect: isCounting ? countTokensDialect : dialects[dialect],
      count: isCounting
        ? (prompt, signal) => countTokens(prompt, { route, signal, upstream: upstreams })
        : null,
      capture: this.#translatedCapture(route, request, dialect),
      keepAliveMs: this.#options.keepAliveMs ?? usualKeepAliveMs,
      onDefect: (error) => this.#notes.defect(error),
    });
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

  #ended(call: RunningCall, ended: RelayedCall, { budget }: LiveRoute): void {
    this.#parts.calls.ended(ended.rolloutId, call);
    try {
      this.#options.onCall?.(ended, budget.used);
    } catch (error) {
      this.#notes.observerFailed(error);
    }
  }
}

const ownDefect: GatewayError = { status: 500, code: 'INTERNAL', message: 'a defect' };

/** null = the upstream's own. */
function dialectOf(target: GatewayTarget): Dialect | null {
  return target.kind === 'relay' ? null : dialects[target.dialect];
}
