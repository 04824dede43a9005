/** What the server and the process of its backend tell each other. Everything is plain data. */
import type {
  AbortReceipt,
  ArchivedFiles,
  ExecutionProbe,
  ExecutionRequest,
  ExecutionResult,
} from '../../backends/execution-backend.ts';
import type { ServeConfig } from '../../config/serve/read-serve-config.ts';
import type { ErrorFault } from '../../core/error-fault.ts';
import type { LogLevel } from '../../core/logger.ts';
import type { RolloutProgress } from '../../wire/rollout/progress.ts';
import type { Composition } from '../ports.ts';

export interface BackendTask {
  readonly config: ServeConfig;
  readonly composition: Composition;
}

/** What the server asks of the backend, by number: each question has one answer. */
export type BackendCall =
  | { readonly name: 'start' | 'close' | 'ping' }
  | { readonly name: 'probe'; readonly id: string }
  | { readonly name: 'forget'; readonly ids: readonly string[] }
  | { readonly name: 'abort'; readonly key: number; readonly reason: ErrorFault }
  | {
      readonly name: 'release';
      readonly key: number;
      readonly archived: ArchivedFiles | null;
    };

export type BackendAnswer = AbortReceipt | ExecutionProbe | BackendFacts | null;

/** `key` names an execution. */
export type ToBackend =
  /** The first one. */
  | { readonly kind: 'make'; readonly task: BackendTask }
  | { readonly kind: 'execute'; readonly key: number; readonly request: ExecutionRequest }
  | { readonly kind: 'call'; readonly number: number; readonly call: BackendCall }
  /** The signal of a call has fired. */
  | { readonly kind: 'give up'; readonly number: number; readonly reason: ErrorFault }
  | { readonly kind: 'hooked'; readonly number: number; readonly fault: ErrorFault | null };

/** What does not change after the start. */
export interface BackendFacts {
  readonly kind: string;
  readonly capturesFinalResult: boolean;
  readonly health: Readonly<Record<string, unknown>>;
  readonly canProbe: boolean;
  readonly canForget: boolean;
}

export type FromBackend =
  /** In this order; none of them is several itself. */
  | { readonly kind: 'several'; readonly messages: readonly FromBackend[] }
  | { readonly kind: 'made'; readonly facts: BackendFacts }
  | { readonly kind: 'failed'; readonly fault: ErrorFault }
  | { readonly kind: 'answer'; readonly number: number; readonly value: BackendAnswer }
  | { readonly kind: 'refusal'; readonly number: number; readonly fault: ErrorFault }
  | { readonly kind: 'progress'; readonly key: number; readonly progress: RolloutProgress }
  /** `result` null = the agent begins; else the workflow has completed. The backend waits for the answer. */
  | {
      readonly kind: 'hook';
      readonly number: number;
      readonly key: number;
      readonly result: ExecutionResult | null;
    }
  | { readonly kind: 'ended'; readonly key: number; readonly result: ExecutionResult }
  | { readonly kind: 'broken'; readonly key: number; readonly fault: ErrorFault }
  /** A defect that ends the process. */
  | { readonly kind: 'crashed'; readonly why: string }
  | {
      readonly kind: 'log';
      readonly level: LogLevel;
      readonly message: string;
      readonly fields: Readonly<Record<string, unknown>>;
    };
