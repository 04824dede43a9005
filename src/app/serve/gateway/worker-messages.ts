/** What the server and a process of its gateway tell each other. Everything is plain data. */
import type { ServeConfig } from '../../../config/serve/read-serve-config.ts';
import type { ErrorFault } from '../../../core/error-fault.ts';
import type { CallUse } from '../../../gateway/call-budget.ts';
import type { RouteAbort, RouteRequest, UpstreamProbe } from '../../../gateway/gateway-control.ts';
import type { HeldRoute, RelayedCall } from '../../../gateway/model-gateway.ts';
import type { ProcessVitals } from '../../../telemetry/facts.ts';
import type { ModelRoute } from '../../../wire/rollout/model-route.ts';
import type { RouteActivity } from '../../../wire/rollout/route-activity.ts';
import type { ToldLine } from '../told-logger.ts';

export interface WorkerTask {
  readonly config: ServeConfig;
  /** From 1. */
  readonly worker: number;
  /** 0 = any free one. */
  readonly port: number;
  /** Of the process before, which has died. */
  readonly held: readonly HeldRoute[];
}

export interface WorkerVitals {
  readonly routes: number;
  readonly callsRunning: number;
  readonly process: ProcessVitals;
}

interface Questions {
  readonly register: { readonly request: RouteRequest };
  readonly revoke: { readonly rolloutId: string };
  readonly abort: { readonly rolloutId: string };
  readonly captured: { readonly rolloutId: string };
  readonly forget: { readonly rolloutId: string };
  readonly probe: { readonly rolloutId: string };
  readonly activity: { readonly rolloutIds: readonly string[] };
  readonly vitals: object;
  readonly 'stop listening': object;
  readonly close: object;
}

export interface WorkerAnswers {
  readonly register: ModelRoute;
  readonly revoke: null;
  readonly abort: RouteAbort;
  readonly captured: string | null;
  readonly forget: null;
  readonly probe: UpstreamProbe | null;
  /** In the order of the question. */
  readonly activity: readonly (RouteActivity | null)[];
  readonly vitals: WorkerVitals;
  readonly 'stop listening': null;
  readonly close: null;
}

export type QuestionName = keyof WorkerAnswers;

/** What is asked of a worker, by number: each question has one answer. */
export type WorkerQuestion<Name extends QuestionName = QuestionName> = {
  [Each in Name]: { readonly name: Each } & Questions[Each];
}[Name];

export type ToWorker =
  /** The first one. */
  | { readonly kind: 'make'; readonly task: WorkerTask }
  | { readonly kind: 'question'; readonly number: number; readonly question: WorkerQuestion }
  /** The signal of a question has fired. */
  | { readonly kind: 'give up'; readonly number: number }
  | {
      readonly kind: 'health';
      readonly number: number;
      readonly document: Readonly<Record<string, unknown>>;
    };

export interface EndedCall {
  readonly call: RelayedCall;
  readonly used: CallUse;
}

export type FromWorker =
  /** It listens. */
  | { readonly kind: 'made'; readonly url: string }
  | { readonly kind: 'failed'; readonly fault: ErrorFault }
  | {
      readonly kind: 'answer';
      readonly number: number;
      readonly value: WorkerAnswers[QuestionName];
    }
  | { readonly kind: 'refusal'; readonly number: number; readonly fault: ErrorFault }
  | { readonly kind: 'calls'; readonly ended: readonly EndedCall[]; readonly running: number }
  /** Somebody asks for the health of the server. */
  | { readonly kind: 'health'; readonly number: number }
  /** A defect that ends the process. */
  | { readonly kind: 'crashed'; readonly why: string }
  | ({ readonly kind: 'log' } & ToldLine);
