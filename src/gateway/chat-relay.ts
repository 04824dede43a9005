/**
 * The relay between agents and the chat address that a controller names. Every rollout has a key of ours; what comes with it goes to the rollout's
 * upstream with the upstream's own key, and bytes go through as they come, both ways.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { ModelRoute } from '../wire/rollout/model-route.ts';
import type { RouteActivity } from '../wire/rollout/route-activity.ts';
import type { GatewayControl, RouteAbort, RouteRequest } from './gateway-control.ts';

/** One call that has ended, for observers. */
export interface RelayedCall {
  readonly rolloutId: string;
  /** Of the answer that the agent got; null = none: the agent or an abort ended the call first. */
  readonly status: number | null;
  readonly firstByteMs: number | null;
  readonly durationMs: number;
  readonly answerBytes: number;
}

export interface ChatRelayOptions {
  /** Where the data server listens, with `/v1`; asked at every registration, since a port may be chosen by the system. */
  readonly baseUrl: () => string;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Calls of one rollout at the same time; more are answered 429. Default 64. */
  readonly maxCallsPerRollout?: number;
  /** Of a request. Default 64 MiB. */
  readonly bodyLimitBytes?: number;
  /** An observer: what it throws is logged. */
  readonly onCall?: (call: RelayedCall) => void;
}

export class ChatRelay implements GatewayControl, AsyncDisposable {
  constructor(options: ChatRelayOptions) {
    void options;
  }

  register(request: RouteRequest): Promise<ModelRoute> {
    throw new Error(`not yet: ${request.rolloutId}`);
  }

  revoke(rolloutId: string): Promise<void> {
    throw new Error(`not yet: ${rolloutId}`);
  }

  abort(rolloutId: string): Promise<RouteAbort> {
    throw new Error(`not yet: ${rolloutId}`);
  }

  activity(rolloutId: string): RouteActivity | null {
    throw new Error(`not yet: ${rolloutId}`);
  }

  /** Takes the request when its path is one of the gateway's; false = not ours, nothing was touched. Never throws. */
  handle(request: IncomingMessage, response: ServerResponse): boolean {
    void request;
    void response;
    return false;
  }

  /** Ends every call and closes the connections to upstreams. Idempotent. */
  close(): Promise<void> {
    return Promise.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
