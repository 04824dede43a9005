/**
 * Takes calls in: whose it is, whether it may be, and then the way it goes. Chat completions are relayed as bytes, other dialects are translated. A key that is
 * not known is refused before anything else of the request is looked at.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Agent } from 'undici';
import type { AgentSide } from './agent/agent-side.ts';
import { answerError } from './agent/answer-error.ts';
import { HttpAgent } from './agent/http-agent.ts';
import type { RawHead } from './agent/raw-head.ts';
import type { CallParts } from './call-parts.ts';
import type { RelayedCall } from './call-progress.ts';
import {
  deadKey,
  kindOf,
  refusalByBudget,
  refusalOfForm,
  refuse,
  unauthorized,
  type CameIn,
} from './call-refusals.ts';
import type { CallDialect } from './capture/call-capture.ts';
import { RelayCapture } from './capture/relay-capture.ts';
import { TranslatedCapture } from './capture/translated-capture.ts';
import { countHere, countTokens } from './count-tokens.ts';
import type { Dialect } from './dialects/dialect.ts';
import { chatDialect } from './dialects/chat/chat-dialect.ts';
import { countTokensDialect } from './dialects/messages/count-tokens.ts';
import { messagesDialect } from './dialects/messages/messages-dialect.ts';
import { responsesDialect } from './dialects/responses/responses-dialect.ts';
import { ownDefect, type GatewayError } from './gateway-error.ts';
import type { ModelGatewayOptions } from './gateway-options.ts';
import type { LiveRoute } from './live-route.ts';
import { RelayCall } from './relay-call.ts';
import { callOf, isGreeting, type GatewayCall, type GatewayTarget } from './relay-request.ts';
import type { RouteKeys } from './route-keys.ts';
import { RouteNotes } from './route-notes.ts';
import type { RunningCall, RunningCalls } from './running-calls.ts';
import { TranslatedCall } from './translated-call.ts';
import type { UpstreamClient } from './upstream/upstream-client.ts';

const mebibyte = 1024 * 1024;
const usualKeepAliveMs = 12_000;

const dialects = { chat: chatDialect, responses: responsesDialect, messages: messagesDialect };

export interface CallServerParts {
  readonly keys: Pick<RouteKeys<LiveRoute>, 'find' | 'findHashed'>;
  readonly calls: RunningCalls;
  /** Of relayed calls. */
  readonly upstream: UpstreamClient;
  /** Of what else is asked of upstreams. */
  readonly upstreams: Agent;
}

interface Admitted<Target extends GatewayTarget> {
  readonly target: Target;
  readonly route: LiveRoute;
}

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

  /** For calls of chat completions with a key that lives: what begins one, and never throws; null = it is to be handled, and nothing was touched. */
  admit(head: RawHead): ((agent: AgentSide) => void) | null {
    if (head.length > this.#bodyLimitBytes) return null;
    const target = head.said.call?.target;
    if (target?.kind !== 'relay' || target.suffix === '/models') return null;
    const route = this.#parts.keys.findHashed(head.said.keyHash);
    if (route === null || route.isTokens) return null;
    return (agent) => {
      try {
        const refusal = this.#refusalByBudget(target, route);
        if (refusal === null) this.#relay({ target, route }, agent);
        else refuseAgent(agent, refusal);
      } catch (error) {
        this.#notes.defect(error);
        if (agent.sentStatus === null) refuseAgent(agent, ownDefect);
        else agent.destroy();
      }
    };
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
    else if (target.kind === 'relay' && target.suffix === '/chat/completions' && route.isTokens)
      this.#translate({ target: { kind: 'translate', dialect: 'chat' }, route }, came);
    else if (target.kind === 'relay')
      this.#relay({ target, route }, new HttpAgent(came.request, came.response));
    else this.#translate({ target, route }, came);
  }

  #refusalByBudget(target: GatewayTarget, route: LiveRoute): GatewayError | null {
    return refusalByBudget(kindOf(target), route, {
      now: this.#options.clock.now(),
      onSpent: () => this.#notes.spent(route),
    });
  }

  #relay(
    { target, route }: Admitted<Extract<GatewayTarget, { readonly kind: 'relay' }>>,
    agent: AgentSide,
  ): void {
    const { suffix } = target;
    const isSampling = suffix !== '/models';
    this.#begin(route, target, (parts) => {
      const capture = isSampling ? this.#relayCapture(route, agent) : null;
      return new RelayCall({
        ...{ ...parts, suffix, agent, capture, upstream: this.#parts.upstream },
        pins: isSampling ? route.pins : null,
      });
    });
  }

  #begin(
    route: LiveRoute,
    target: GatewayTarget,
    make: (parts: CallParts) => RunningCall & { send(): void },
  ): void {
    const running = make({
      ...{ route, clock: this.#options.clock, bodyLimitBytes: this.#bodyLimitBytes },
      share: route.budget.begin(kindOf(target)),
      onNotes: (notes) => this.#notes.leftOut(route, notes),
      onRefusal: (status, message) => this.#notes.refusal(route, status, message),
      onEnd: (ended) => this.#ended(running, ended, route),
    });
    this.#parts.calls.begun(route.rolloutId, running);
    running.send();
  }

  #translate(
    { target, route }: Admitted<Exclude<GatewayTarget, { readonly kind: 'relay' }>>,
    { request, response }: CameIn,
  ): void {
    const { kind, dialect } = target;
    const isCounting = kind === 'count-tokens';
    const { upstreams } = this.#parts;
    this.#begin(route, target, (parts) => {
      return new TranslatedCall({
        ...{ ...parts, request, response },
        dialect: isCounting ? countTokensDialect : dialects[dialect],
        count: isCounting
          ? (prompt, signal) =>
              route.isTokens
                ? countHere(prompt, route)
                : countTokens(prompt, { route, signal, upstream: upstreams })
          : null,
        capture: this.#translatedCapture(route, request, dialect),
        keepAliveMs: this.#options.keepAliveMs ?? usualKeepAliveMs,
        onDefect: (error) => this.#notes.defect(error),
      });
    });
  }

  #relayCapture(route: LiveRoute, { said }: AgentSide): RelayCapture | null {
    const { engineKind: kind = 'chat' } = this.#options;
    if (route.capture === null) return null;
    const { url } = route.endpoint;
    return new RelayCapture({
      ...{ route: route.capture, kind, client: said.userAgent },
      at: { url, requestId: randomUUID(), secrets: route.secrets },
    });
  }

  #translatedCapture(
    route: LiveRoute,
    { headers }: IncomingMessage,
    dialect: CallDialect,
  ): TranslatedCapture | null {
    const { engineKind = 'chat' } = this.#options;
    const kind = route.isTokens ? 'chat' : engineKind;
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

function refuseAgent(agent: AgentSide, error: GatewayError): void {
  answerError(agent, error);
  agent.discard();
}

/** null = the upstream's own. */
function dialectOf(target: GatewayTarget): Dialect | null {
  return target.kind === 'relay' ? null : dialects[target.dialect];
}
