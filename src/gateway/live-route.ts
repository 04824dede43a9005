import { RolloutError } from '../core/errors.ts';
import type { Clock } from '../core/clock.ts';
import type { Engine, EngineOpener } from '../engines/engine.ts';
import { parseEndpoint, type Endpoint } from '../engines/shared/endpoint.ts';
import type { CaptureActivity, RouteActivity } from '../wire/rollout/route-activity.ts';
import type { RouteRules, SamplingPins } from '../wire/rollout/route-rules.ts';
import { CallBudget, type CallUse } from './call-budget.ts';
import type { CallCapture, RouteCapture } from './capture/call-capture.ts';
import type { RouteRequest } from './gateway-control.ts';
import { ResponseStore, type KeptTotal } from './response-store.ts';
import { secretBytes } from './secret-filter.ts';
import { tokensEngine } from './tokens/tokens-engine.ts';
import {
  engineUrlOf,
  openRouteSession,
  type RouteSession,
  type TokensMode,
} from './tokens/tokens-mode.ts';

const mostNotes = 100;
const longestNote = 500;
const leastSecretLength = 16;

/** What a route needs to know of one of its calls. */
export interface CallState {
  readonly startedAt: Date;
  readonly bytes: number;
  readonly lastByteAt: Date | null;
}

export interface LiveRouteParts {
  readonly clock: Clock;
  /** The upstream as calls in other dialects than its own see it. */
  readonly openEngine: (
    options: Pick<Parameters<EngineOpener>[0], 'baseUrl' | 'apiKey' | 'kind'>,
  ) => Promise<Engine>;
  /** null = its upstream makes the ids of its prompts. */
  readonly tokens: TokensMode | null;
  readonly keptResponses: KeptTotal;
  readonly rules: RouteRules;
  /** Calls at the same time, unless the rules allow fewer. */
  readonly maxCalls: number;
  readonly capture: CallCapture | null;
  /** Set where it goes on after another process that held it has died: nothing more is captured then. */
  readonly usedBefore: CallUse | null;
}

/** One rollout's way to its upstream, and what its calls did so far. */
export class LiveRoute {
  readonly rolloutId: string;
  readonly endpoint: Endpoint;
  /** Value of the header; null = none. */
  readonly authorization: string | null;
  readonly calls = new Set<CallState>();
  readonly responses: ResponseStore;
  readonly budget: CallBudget;
  /** null = requests go as they come. */
  readonly pins: SamplingPins | null;
  /** null = its calls are not captured. */
  readonly capture: RouteCapture | null;
  readonly #clock: Clock;
  readonly #openEngine: () => Promise<Engine>;
  /** What is told of a capture that is no more; null = there was none, or it goes on. */
  readonly #capturedBefore: CaptureActivity | null;
  /** Names of what calls left out, each told once. */
  readonly #notes = new Set<string>();
  readonly #tokens: TokensMode | null;
  #session: Promise<RouteSession> | null = null;
  #engine: Promise<Engine> | null = null;
  #isClosed = false;
  #callsDone = 0;
  #lastCallEndedAt: Date | null = null;
  #refusal: RouteActivity['refusal'] = null;
  #secretBytes: readonly Buffer[] | null = null;

  /** MODEL_UNSPECIFIED for an empty address, CONFIG_INVALID for one that is none. */
  constructor(request: RouteRequest, parts: LiveRouteParts) {
    const { clock, openEngine, tokens, keptResponses, rules, maxCalls, usedBefore } = parts;
    this.rolloutId = request.rolloutId;
    this.#clock = clock;
    this.budget = new CallBudget(rules.budgets, { maxInFlight: maxCalls, usedBefore });
    this.pins = Object.keys(rules.pins).length === 0 ? null : rules.pins;
    this.responses = new ResponseStore(keptResponses);
    this.#tokens = tokens;
    const { upstreamUrl, upstreamKey: apiKey } = request;
    if (tokens === null)
      this.#openEngine = () => openEngine({ kind: 'chat', baseUrl: upstreamUrl, apiKey });
    else {
      const baseUrl = engineUrlOf(upstreamUrl);
      this.#openEngine = async () =>
        tokensEngine(
          await openEngine({ kind: tokens.kind, baseUrl, apiKey }),
          await this.session(),
        );
    }
    this.endpoint = endpointOf(request);
    this.authorization =
      request.upstreamKey === null ? this.endpoint.authorization : `Bearer ${request.upstreamKey}`;
    const capture = usedBefore === null ? parts.capture : null;
    // Where the ids of prompts are made here, the engine is asked for those of answers already.
    const wanted = request.train && { ...request.train, ids: tokens === null };
    this.capture = capture?.open(this.rolloutId, this.secrets, wanted) ?? null;
    const isCutOff = usedBefore !== null && parts.capture !== null;
    this.#capturedBefore = isCutOff ? { calls: usedBefore.requests, problem: workerLost } : null;
  }

  /** The same as those that a model does not say by chance. */
  get secretBytes(): readonly Buffer[] {
    return (this.#secretBytes ??= secretBytes(this.unlikelySecrets));
  }

  /** Strings of the upstream that nobody may see. */
  get secrets(): readonly string[] {
    return this.endpoint.secrets;
  }

  /** Those that a model does not say by chance: `EMPTY` is a usual key of an engine of one's own, and a word. */
  get unlikelySecrets(): readonly string[] {
    return this.secrets.filter((secret) => secret.length >= leastSecretLength);
  }

  /** What no answer to an agent may hold: besides the secrets, where the upstream is. */
  get hidden(): readonly string[] {
    return [...this.secrets, this.endpoint.url, this.endpoint.origin];
  }

  get activity(): RouteActivity {
    let waiting: CallState | null = null;
    for (const call of this.calls)
      if (waiting === null || lastSign(call) < lastSign(waiting)) waiting = call;
    return {
      callsRunning: this.calls.size,
      callsDone: this.#callsDone,
      waiting:
        waiting === null
          ? null
          : { since: waiting.startedAt, bytes: waiting.bytes, lastByteAt: waiting.lastByteAt },
      lastCallEndedAt: this.#lastCallEndedAt,
      refusal: this.#refusal,
      spent: this.budget.spent,
      capture: this.capture?.activity ?? this.#capturedBefore,
    };
  }

  /** One for all calls; its connections are freed when the route is closed and its last call has ended. */
  engine(): Promise<Engine> {
    return (this.#engine ??= this.#openEngine());
  }

  /** Whether the ids of its prompts are made here. */
  get isTokens(): boolean {
    return this.#tokens !== null;
  }

  /** What makes them. CONFIG_INVALID. */
  session(): Promise<RouteSession> {
    if (this.#tokens === null) throw new Error('the route is relayed');
    return (this.#session ??= openRouteSession(this.#tokens));
  }

  /** Those of the notes that were not told before; what an agent may make up without end is told up to a bound. */
  fresh(notes: readonly string[]): readonly string[] {
    const fresh = [...new Set(notes.map((note) => note.slice(0, longestNote)))]
      .filter((note) => !this.#notes.has(note))
      .slice(0, mostNotes - this.#notes.size);
    for (const note of fresh) this.#notes.add(note);
    return fresh;
  }

  /** Running calls finish, also those that have not come to the engine yet. */
  close(): void {
    this.#isClosed = true;
    this.#free();
  }

  begin(call: CallState): void {
    this.calls.add(call);
  }

  /** True for the first call to end it. */
  end(call: CallState): void {
    if (!this.calls.delete(call)) return;
    this.#callsDone += 1;
    this.#lastCallEndedAt = this.#clock.now();
    this.#free();
  }

  succeeded(): void {
    this.#refusal = null;
  }

  /** Answers how many there were in a row. */
  refused(status: number | null, message: string): number {
    const count = (this.#refusal?.count ?? 0) + 1;
    this.#refusal = { status, message: this.withoutSecrets(message), at: this.#clock.now(), count };
    return count;
  }

  withoutSecrets(text: string): string {
    return this.secrets.reduce((left, secret) => left.replaceAll(secret, '[REDACTED]'), text);
  }

  #free(): void {
    if (!this.#isClosed || this.calls.size > 0) return;
    this.responses.close();
    this.#engine?.then((engine) => engine.close()).catch(() => undefined);
  }
}

const workerLost: CaptureActivity['problem'] = {
  code: 'GATEWAY_WORKER_LOST',
  message: 'the process that captured the calls has died: what it had is kept, nothing is added',
};

function lastSign(call: CallState): number {
  return (call.lastByteAt ?? call.startedAt).getTime();
}

function endpointOf({ upstreamUrl, upstreamKey }: RouteRequest): Endpoint {
  if (upstreamUrl.trim() === '')
    throw new RolloutError('MODEL_UNSPECIFIED', 'the rollout names no chat address', {
      phase: 'model-call',
      field: 'chat_completions_url',
      remedy: 'Send the address that /chat/completions is appended to.',
    });
  try {
    return parseEndpoint(upstreamUrl, upstreamKey);
  } catch (error) {
    throw new RolloutError('CONFIG_INVALID', 'the chat address is not an http(s) URL', {
      phase: 'model-call',
      field: 'chat_completions_url',
      remedy: 'Send an address such as http://127.0.0.1:9000/v1.',
      cause: error,
    });
  }
}
