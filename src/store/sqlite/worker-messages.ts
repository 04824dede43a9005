import type { ErrorFault } from '../../core/error-fault.ts';
import type { SchemaStep } from './schema.ts';
import type { Answer, Argument, CallName } from './store-calls.ts';

/** What the worker is started with. */
export interface WorkerTask {
  readonly file: string;
  readonly steps: readonly SchemaStep[];
  /** The file never grows beyond it; null = as far as the disk goes. */
  readonly maxSizeBytes: number | null;
}

/** One transaction, synced. */
export interface CommitFigures {
  readonly durationMs: number;
  readonly writes: number;
}

export interface CallMessage<Name extends CallName = CallName> {
  readonly number: number;
  readonly name: Name;
  readonly argument: Argument<Name>;
}

/** In the order of the calls. */
export type ToWorker = readonly (CallMessage | { readonly kind: 'close' })[];

export type CallAnswer =
  | { readonly number: number; readonly value: Answer<CallName> }
  | { readonly number: number; readonly fault: ErrorFault };

export type FromWorker =
  /** The file is open. `copy` = where the state before an upgrade was kept; null = there was none. */
  | { readonly kind: 'open'; readonly copy: string | null }
  | { readonly kind: 'failed'; readonly fault: ErrorFault }
  | {
      readonly kind: 'answers';
      readonly answers: readonly CallAnswer[];
      /** Events may have been added. */
      readonly hasEvents: boolean;
      /** null = only reads. */
      readonly commit: CommitFigures | null;
    };
