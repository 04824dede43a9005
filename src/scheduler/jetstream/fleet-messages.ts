/** What a front end and its hosts tell each other. Plain data; a change that the other side would not understand raises the protocol. */
import type {
  AbortReceipt,
  ArchivedFiles,
  ExecutionProbe,
  ExecutionRequest,
  ExecutionResult,
} from '../../backends/execution-backend.ts';
import type { ErrorFault } from '../../core/error-fault.ts';
import type { RouteAbort, RouteRequest, UpstreamProbe } from '../../gateway/gateway-control.ts';
import type { ModelRoute } from '../../wire/rollout/model-route.ts';
import type { RolloutProgress } from '../../wire/rollout/progress.ts';
import type { RouteActivity } from '../../wire/rollout/route-activity.ts';
import type { CarriedFile } from './file-carrier.ts';

export const fleetProtocol = 1;

/** Told again and again, each to all of the other kind. */
export interface FrontBeat {
  readonly protocol: number;
  readonly version: string;
  /** Of this life of the front end. */
  readonly epoch: string;
  readonly startedAt: number;
  /** What hosts must execute with. */
  readonly backendKind: string;
  /** A host that it has given up, although it says that it works: it ends what it runs and comes back under another name. null = none. */
  readonly lost: string | null;
  /** Of every host that it holds for alive: `saidMs` of the last sign of life that it heard. */
  readonly heard: Readonly<Record<string, number>>;
}

export interface HostBeat {
  readonly protocol: number;
  readonly version: string;
  /** Of this life of the host. */
  readonly host: string;
  /** Of the machine, for people. */
  readonly name: string;
  /** The front end that it works for, everything of another one having ended; null = none yet. */
  readonly epoch: string | null;
  /** 0 = it takes nothing more. */
  readonly slots: number;
  /** By the host's own clock. Its lease runs from the last that the front end has heard. */
  readonly saidMs: number;
  readonly facts: HostFacts;
}

export interface HostFacts {
  readonly kind: string;
  readonly capturesFinalResult: boolean;
  readonly health: Readonly<Record<string, unknown>>;
}

export interface WorkItem {
  readonly rolloutId: string;
  readonly epoch: string;
  readonly lease: string;
}

/** A result whose files are in the object store. */
export interface CarriedResult extends Omit<ExecutionResult, 'files'> {
  readonly files: readonly CarriedFile[];
}

/** What is asked of the host that holds a lease. */
export type HostCall =
  | { readonly name: 'register'; readonly request: RouteRequest }
  | { readonly name: 'revoke' | 'end calls' | 'captured' | 'activity' }
  | { readonly name: 'probe' | 'probe upstream' }
  | { readonly name: 'abort'; readonly reason: ErrorFault }
  | { readonly name: 'release'; readonly archived: ArchivedFiles | null };

export type HostAnswer =
  | ModelRoute
  | RouteAbort
  | RouteActivity
  | UpstreamProbe
  | ExecutionProbe
  | AbortReceipt
  | readonly CarriedFile[]
  | null;

export type ToHost =
  | {
      readonly kind: 'ask';
      readonly number: number;
      readonly lease: string;
      readonly call: HostCall;
    }
  | { readonly kind: 'execute'; readonly lease: string; readonly request: ExecutionRequest }
  | { readonly kind: 'hooked'; readonly number: number; readonly fault: ErrorFault | null }
  /** Nobody wants it: end what there is of it, its claim too. */
  | { readonly kind: 'drop'; readonly lease: string }
  /** What trials of these left may go. */
  | { readonly kind: 'forget'; readonly ids: readonly string[] };

export type FromHost =
  | { readonly kind: 'claimed'; readonly lease: string }
  /** Its agent has begun elsewhere. */
  | { readonly kind: 'refused'; readonly lease: string }
  | { readonly kind: 'answer'; readonly number: number; readonly value: HostAnswer }
  | { readonly kind: 'refusal'; readonly number: number; readonly fault: ErrorFault }
  | { readonly kind: 'progress'; readonly lease: string; readonly progress: RolloutProgress }
  /** `result` null = the agent begins; else the workflow has completed. The host waits for the answer. */
  | {
      readonly kind: 'hook';
      readonly number: number;
      readonly lease: string;
      readonly result: CarriedResult | null;
      /** Of its model calls at that moment, which is asked for with every result. */
      readonly activity: RouteActivity | null;
    }
  | {
      readonly kind: 'ended';
      readonly lease: string;
      readonly result: CarriedResult;
      readonly activity: RouteActivity | null;
    }
  | { readonly kind: 'broken'; readonly lease: string; readonly fault: ErrorFault };
