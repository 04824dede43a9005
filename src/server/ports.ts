/** What the routes need from the rest of the program. */
import type { Logger } from '../core/logger.ts';
import type { Clock } from '../core/clock.ts';
import type { Diagnosis } from '../wire/rollout/diagnosis.ts';
import type { AgentServer } from '../agent-server/agent-server.ts';
import type { Caller, RolloutService } from '../scheduler/rollout-service.ts';
import type { AdminSecret } from './admin-secret.ts';
import type { Collections } from './collections/collections.ts';
import type { KeyRing } from './key-ring.ts';

/** Says why a rollout, or everything, is not moving: `HangFinder`. Bounded in time: what does not answer is a finding, not a wait. */
export interface Doctor {
  /** null = the caller may not see such a rollout. */
  diagnose(id: string, caller: Caller): Promise<Diagnosis | null>;
  /** What holds up every rollout; empty = nothing. */
  diagnoseServer(): Promise<readonly Diagnosis[]>;
}

/** Metrics in the text format of Prometheus. */
export interface MetricsText {
  readonly contentType: string;
  text(): Promise<string>;
}

/** The archive, as far as files are handed out. */
export interface RolloutFiles {
  list(rolloutId: string): Promise<
    readonly {
      readonly path: string;
      readonly sizeBytes: number;
      readonly sha256: string;
      readonly modifiedAt: Date;
    }[]
  >;
  locate(rolloutId: string, path: string): Promise<string | null>;
}

/** The payload that clients of Miles take, made of a file of samples. `layers`: of the model's routed experts; null = not known. */
export type MilesPayload = (file: string, layers: number | null) => Promise<Uint8Array>;

/** Which addresses a controller may name. */
export interface AddressPolicy {
  /** Why `url` may not be used, in one sentence without its user-info; null = it may. */
  problem(url: string): string | null;
}

export interface ServerLimits {
  /** Of a request body. */
  readonly bodyBytes: number;
  /** Until a request has arrived as a whole. */
  readonly requestTimeoutMs: number;
  /** Until its headers have. */
  readonly headersTimeoutMs: number;
  /** Event streams at once. */
  readonly maxStreams: number;
  /** Silence after which a stream sends a comment. */
  readonly keepAliveMs: number;
  /** How long a reader of a stream may take nothing; then its connection is ended, and it resumes by its cursor. */
  readonly slowReaderMs: number;
}

export const defaultServerLimits: ServerLimits = {
  bodyBytes: 16 * 2 ** 20,
  requestTimeoutMs: 60_000,
  headersTimeoutMs: 15_000,
  maxStreams: 256,
  keepAliveMs: 15_000,
  slowReaderMs: 30_000,
};

export interface ControlServerParts {
  readonly service: RolloutService;
  readonly keys: KeyRing;
  /** CIDR blocks or addresses from which no key is asked: their callers are the operator. Compiled by `compileAllowFrom`. */
  readonly allowFrom: AllowFrom;
  readonly files: RolloutFiles;
  readonly milesPayload: MilesPayload;
  readonly metrics: MetricsText;
  readonly doctor: Doctor;
  readonly addresses: AddressPolicy;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: ServerLimits;
  /** Runs trials for whoever waits for them. */
  readonly agentServer: AgentServer;
  /** Of the routes that end trials; null = whoever may call may call those. */
  readonly adminSecret: AdminSecret;
  /** Collects groups for trainers. */
  readonly collections: Collections;
  /** `instance_id` of `/health`; null = none. */
  readonly instanceId: string | null;
  /** `info.version` of the OpenAPI document. */
  readonly version: string;
}

/** Whether an address needs no key. */
export interface AllowFrom {
  readonly isEmpty: boolean;
  /** `remoteAddress` of a socket: IPv4 mapped into IPv6 counts as IPv4. */
  has(address: string): boolean;
}
