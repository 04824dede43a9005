/**
 * What the gateway keeps of the model calls of rollouts: each request as it went up, and its answer as the engine gave it, before either takes the shape of
 * another dialect. Keeping never fails a call: where it cannot go on it ends for that rollout, and says why.
 */
import type { ModelPart } from '../../engines/model-call.ts';
import type { CaptureActivity } from '../../wire/rollout/route-activity.ts';

export type CallDialect = 'chat' | 'responses' | 'messages';

/** What a client's call is for: `turn` is the agent's work, all others are asides of its program. */
export type CallPurpose = 'turn' | 'title' | 'summary' | 'probe' | 'count-tokens';

/** How the answer of a call ended. */
export type CallEnd =
  | 'complete' // the engine said that it is over
  | 'cut' // it broke off, or could not be read further
  | 'aborted' // the rollout was ended
  | 'left' // the agent did not wait for the rest
  | 'refused'; // the engine did not begin to answer

/** A request as it goes up. */
export interface SentRequest {
  readonly dialect: CallDialect;
  readonly isStreaming: boolean;
  /** `user-agent` of the client; null = it says none. */
  readonly client: string | null;
  /** The body as it went up; null = it was not JSON. */
  readonly body: Readonly<Record<string, unknown>> | null;
  /** Its text; absent = that of `body`. */
  readonly text?: string;
  /** Set where the path says it. */
  readonly purpose?: CallPurpose;
}

export interface EndedCall {
  readonly end: CallEnd;
  /** Of the upstream; null = none came. */
  readonly status: number | null;
  /** What went wrong, in one line; null = nothing. */
  readonly problem: string | null;
  /** Whether the agent got all that it was sent. */
  readonly isDelivered: boolean;
  readonly firstByteMs: number | null;
  readonly durationMs: number;
  /** What the ids of the answer are made of that the client got; null or absent = it has none. */
  readonly answerId?: string | null;
  /** Of a call that counts. */
  readonly tokens?: number;
}

/** One call: `sent` once, `part` for what is read of the answer, then `ended` once. None of them throws or waits for the disk. */
export interface CallRecord {
  sent(request: SentRequest): void;
  part(part: ModelPart): void;
  /** Without `sent` nothing is kept. Idempotent. */
  ended(call: EndedCall): void;
}

/** What samples need of the engine, besides what one of its kind is asked for. */
export interface WantedOfEngine {
  /** Ids and log-probabilities, also where nothing is known of the upstream. */
  readonly ids: boolean;
  readonly routedExperts: boolean;
  readonly indexerTopk: boolean;
}

/** The calls of one route. */
export interface RouteCapture {
  readonly activity: CaptureActivity;
  /** Absent = no samples are made of it. */
  readonly wanted?: WantedOfEngine;
  /** Of ours, that the upstream has refused. */
  readonly unknownFields: Set<string>;
  begin(): CallRecord;
  /** Resolves when what waits for the disk is within its bound; a call is not sent before. Rejects with the signal's reason. */
  room(signal: AbortSignal): Promise<void>;
  /** Resolves when all that has ended by now is on disk, as far as it can be. Never rejects. */
  written(): Promise<void>;
  /** Writes what waits and closes the file; what comes later is lost. Idempotent. Never rejects. */
  close(): Promise<void>;
}

export interface CallCapture {
  /** What an earlier route of this rollout kept goes. `secrets`: replaced in what is kept. `wanted`: samples are to be made of it. null = it is not kept. */
  open(rolloutId: string, secrets: readonly string[], wanted?: WantedOfEngine): RouteCapture | null;
  /** Where the calls of a rollout are kept whose route is closed, also by an earlier life of the server; null = there are none. */
  fileOf(rolloutId: string): Promise<string | null>;
  /** Whose calls are kept; what is no rollout's any more is removed. Only before anything is opened. */
  left(): Promise<readonly string[]>;
  /** Idempotent. */
  forget(rolloutId: string): Promise<void>;
}
