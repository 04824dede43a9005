import type { LookupFunction } from 'node:net';
import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type { EngineKind, EngineOpener } from '../engines/engine.ts';
import type { RouteRules } from '../wire/rollout/route-rules.ts';
import type { UrlPolicy } from '../wire/url-policy.ts';
import type { CallUse } from './call-budget.ts';
import type { CallCapture } from './capture/call-capture.ts';
import type { RelayedCall } from './call-progress.ts';
import type { TokensMode } from './tokens/tokens-mode.ts';

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
  /** null = all routes are relayed. Default null. */
  readonly tokens?: TokensMode | null;
  /** Of every rollout, beside its own. */
  readonly rules?: RouteRules;
  /** Of a request. Default 64 MiB. */
  readonly bodyLimitBytes?: number;
  /** A translated answer that is silent for this long sends a sign of life. Default 12 s: some clients give up after 15. */
  readonly keepAliveMs?: number;
  /** Of a translated call: signs of life would hide an upstream that is dead. Default 30 min. */
  readonly upstreamSilenceMs?: number;
  /** An observer: what it throws is logged. `used`: what the rollout has used up by then. */
  readonly onCall?: (call: RelayedCall, used: CallUse) => void;
}
