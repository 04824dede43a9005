/**
 * The gateway as others see it: it gives every rollout a key and an address of ours, so that the upstream's key never enters a sandbox and an abort can
 * refuse calls. The process that holds a key holds its calls.
 */
import type { ModelRoute } from '../wire/rollout/model-route.ts';
import type { RouteActivity } from '../wire/rollout/route-activity.ts';
import type { RouteRules } from '../wire/rollout/route-rules.ts';
import type { SampleRules } from '../wire/rollout/train-rules.ts';

export interface RouteRequest {
  readonly rolloutId: string;
  /** What `/chat/completions` is appended to; opaque, kept byte for byte. Never empty. */
  readonly upstreamUrl: string;
  /** null = no authorisation header upstream. */
  readonly upstreamKey: string | null;
  /** What its calls keep to besides what holds for all; absent = nothing. */
  readonly rules?: RouteRules;
  /** Samples are to be made of its calls: they are captured in any case, and the engine is asked for what samples need. Absent = none are. */
  readonly train?: Pick<SampleRules, 'routedExperts' | 'indexerTopk'>;
  /** `tokens`: the gateway makes the ids of its prompts itself, as far as it is set up for that. Absent = as the gateway is set. */
  readonly mode?: RouteMode;
}

export type RouteMode = 'relay' | 'tokens';

export interface RouteAbort {
  readonly callsEnded: number;
}

/** Whether an upstream answers anything. */
export interface UpstreamProbe {
  /** null = no answer. */
  readonly status: number | null;
  readonly ms: number;
}

export interface GatewayControl {
  /** Makes a fresh key. One live route per rollout: a second registration replaces and kills the first. */
  register(request: RouteRequest): Promise<ModelRoute>;
  /** The key is dead from now on; running calls finish unless `abort`. Idempotent. */
  revoke(rolloutId: string): Promise<void>;
  /** Refuses new calls and ends running ones here and upstream; resolves when they are gone, at most 1 s. Idempotent. */
  abort(rolloutId: string): Promise<RouteAbort>;
  /**
   * Where the calls of a rollout are captured whose key is dead, complete on disk, also those of an earlier life of the server; null = none were. Waits at most
   * 1 s for calls that still run. Idempotent.
   */
  captured(rolloutId: string): Promise<string | null>;
  /** The file of `captured` is not needed any more. Idempotent. */
  forget(rolloutId: string): Promise<void>;
  /** Rollouts of whose calls an earlier life of the server kept something. Asked before anything is registered. Absent = of none. */
  left?(): Promise<readonly string[]>;
  /** null = no live route, or nothing can be learned of it at the moment. Never rejects. */
  activity(rolloutId: string): Promise<RouteActivity | null>;
  /** Asks the route's upstream for its models, beside its calls; null = no live route. Never rejects: no answer until `signal` fires is an answer. */
  probe?(rolloutId: string, signal: AbortSignal): Promise<UpstreamProbe | null>;
}
