import { RolloutError } from '../core/errors.ts';
import type { Clock } from '../core/clock.ts';
import { parseEndpoint, type Endpoint } from '../engines/shared/endpoint.ts';
import type { RouteActivity } from '../wire/rollout/route-activity.ts';
import type { RouteRequest } from './gateway-control.ts';

/** What a route needs to know of one of its calls. */
export interface CallState {
  readonly startedAt: Date;
  readonly bytes: number;
  readonly lastByteAt: Date | null;
}

/** One rollout's way to its upstream, and what its calls did so far. */
export class LiveRoute {
  readonly rolloutId: string;
  readonly endpoint: Endpoint;
  /** Value of the header; null = none. */
  readonly authorization: string | null;
  readonly calls = new Set<CallState>();
  readonly #clock: Clock;
  #callsDone = 0;
  #lastCallEndedAt: Date | null = null;
  #refusal: RouteActivity['refusal'] = null;

  /** MODEL_UNSPECIFIED for an empty address, CONFIG_INVALID for one that is none. */
  constructor(request: RouteRequest, clock: Clock) {
    this.rolloutId = request.rolloutId;
    this.#clock = clock;
    this.endpoint = endpointOf(request);
    this.authorization =
      request.upstreamKey === null ? this.endpoint.authorization : `Bearer ${request.upstreamKey}`;
  }

  /** Strings of the upstream that nobody may see. */
  get secrets(): readonly string[] {
    return this.endpoint.secrets;
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
    };
  }

  begin(call: CallState): void {
    this.calls.add(call);
  }

  /** True for the first call to end it. */
  end(call: CallState): void {
    if (!this.calls.delete(call)) return;
    this.#callsDone += 1;
    this.#lastCallEndedAt = this.#clock.now();
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
}

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
