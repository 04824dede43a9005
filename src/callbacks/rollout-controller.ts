/**
 * A controller of the rollout protocol: it posts rollouts, waits as long as a full server asks it to, receives the callbacks and answers how each rollout
 * ended. One controller serves any number of rollouts at once.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { systemClock, type Clock } from '../core/clock.ts';
import { LinkedAbort, never } from '../core/linked-abort.ts';
import {
  CallbackListener,
  type ListenAddress,
  type ListenerFault,
  type ReceivedCallback,
} from './callback-listener.ts';
import {
  CallbackRendezvous,
  type AckDocument,
  type CallbackDocument,
  type RolloutEnd,
} from './callback-rendezvous.ts';
import { RolloutSubmitter, SubmissionRefused } from './rollout-submitter.ts';

export interface RolloutControllerOptions {
  /** Address of the rollout server; a key may be part of it. A function is asked before every request. */
  readonly serverUrl: string | (() => string);
  /** Bearer toward the server; none for a server without keys. */
  readonly serverKey?: string;
  /** Bearer of the callbacks; made when absent. */
  readonly callbackKey?: string;
  /** How long a rollout may take from its acceptance; absent = no limit. */
  readonly callbackTimeoutMs?: number;
  /** How long a full server is asked again; absent = no limit. */
  readonly admissionTimeoutMs?: number;
  /** Whether a submission that got no answer is sent again, byte for byte: a server of ours takes it for the same one. */
  readonly resubmits?: boolean;
  /** Makes an end durable before it is acknowledged; its answer is the acknowledgement. */
  readonly commit?: (end: RolloutEnd) => Promise<AckDocument | undefined>;
  /** See {@link ListenerFault}. */
  readonly onReceived?: (callback: ReceivedCallback) => ListenerFault | undefined;
  readonly onConflict?: (rolloutId: string) => void;
  readonly clock?: Clock;
}

/** What to roll out, in the words of the protocol. */
export interface ControllerRequest {
  readonly initial_messages: readonly Readonly<Record<string, unknown>>[];
  /** Made when absent. */
  readonly rollout_id?: string;
  /** What `/chat/completions` is appended to; absent = an agent without a model. */
  readonly chat_completions_url?: string;
  readonly llm_api_key?: string;
  readonly label?: string;
  readonly metadata?: Readonly<Record<string, unknown>>;
  readonly agent_timeout_sec?: number;
  readonly grader_timeout_sec?: number;
  readonly extra_fields?: Readonly<Record<string, unknown>>;
  /** False: no grader callback is asked for, the completion is the end. */
  readonly isGraded?: boolean;
}

export interface ControllerResult {
  readonly id: string;
  /** As the last callback says, or `timeout` (the rollout was then cancelled). */
  readonly status: 'success' | 'failure' | 'timeout' | 'cancelled';
  readonly reward: number | null;
  readonly completion: CallbackDocument | null;
  readonly grader: CallbackDocument | null;
  /** Submissions it took: refusals and the accepted one. */
  readonly attempts: number;
  /** Callbacks so far, repeated ones included; {@link RolloutController.received} knows the later ones too. */
  readonly bodies: readonly ReceivedCallback[];
}

export class RolloutController implements AsyncDisposable {
  readonly #options: RolloutControllerOptions;
  readonly #clock: Clock;
  readonly #callbackKey: string;
  readonly #rendezvous: CallbackRendezvous;
  readonly #listener: CallbackListener;
  readonly #submitter: RolloutSubmitter;
  readonly #received = new Map<string, ReceivedCallback[]>();

  constructor(options: RolloutControllerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#callbackKey = options.callbackKey ?? randomBytes(24).toString('base64url');
    this.#rendezvous = new CallbackRendezvous({
      ...(options.commit !== undefined && { commit: options.commit }),
      onConflict: (rolloutId) => options.onConflict?.(rolloutId),
    });
    this.#listener = new CallbackListener({
      rendezvous: this.#rendezvous,
      apiKey: this.#callbackKey,
      onReceived: (callback) => this.#note(callback),
    });
    this.#submitter = new RolloutSubmitter({
      serverUrl: options.serverUrl,
      serverKey: options.serverKey ?? null,
      resubmits: options.resubmits ?? false,
      admissionTimeoutMs: options.admissionTimeoutMs ?? Infinity,
      clock: this.#clock,
    });
  }

  /** Listens for callbacks; port 0 = any free one. */
  async start(at: ListenAddress = {}): Promise<{ readonly url: string }> {
    return { url: await this.#listener.start(at) };
  }

  /** Every authenticated callback of the rollout, in order. */
  received(rolloutId: string): readonly ReceivedCallback[] {
    return this.#received.get(rolloutId) ?? [];
  }

  /**
   * Runs one rollout to its end. Rejects when the server refuses it for another reason than load, when it cannot be reached, and with the reason of
   * `signal`; the rollout is then cancelled, as after its time is up.
   */
  async run(request: ControllerRequest, signal: AbortSignal = never): Promise<ControllerResult> {
    const id = request.rollout_id ?? randomUUID();
    this.#rendezvous.register(id, { isGraded: request.isGraded !== false });
    try {
      const attempts = await this.#submitter.submit(this.#body(id, request), signal);
      const end = await this.#ended(id, signal);
      if (end.by === 'timeout') await this.cancel([id]).catch(() => undefined);
      return { ...resultOf(end), attempts, bodies: [...this.received(id)] };
    } catch (error) {
      // A submission that was refused is none; one without an answer may run, and its callbacks find an end.
      if (error instanceof SubmissionRefused) this.forget(id);
      else await this.#rendezvous.cancel(id).catch(() => undefined);
      if (signal.aborted) await this.cancel([id]).catch(() => undefined);
      throw error;
    }
  }

  /** Cancels at the server: id → `cancelled_queued`, `cancelled_running` or `not_found`. The rollouts' `run` ends by its own limit or signal. */
  async cancel(ids: readonly string[]): Promise<Readonly<Record<string, string>>> {
    return await this.#submitter.cancel(ids);
  }

  /** Lets go of a rollout that has ended: what is known of it is kept until then, to acknowledge late duplicates. */
  forget(rolloutId: string): void {
    this.#rendezvous.forget(rolloutId);
    this.#received.delete(rolloutId);
  }

  /** Stops listening. Idempotent. */
  async close(): Promise<void> {
    await this.#listener.close();
    await this.#submitter.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #note(callback: ReceivedCallback): ListenerFault | undefined {
    const received = this.#received.get(callback.rolloutId) ?? [];
    this.#received.set(callback.rolloutId, [...received, callback]);
    return this.#options.onReceived?.(callback);
  }

  #body(id: string, { isGraded, ...request }: ControllerRequest): string {
    return JSON.stringify({
      chat_completions_url: '',
      ...request,
      rollout_id: id,
      controller_api_key: this.#callbackKey,
      completion_callback_url: this.#listener.callbackUrl(id, 'completion'),
      grader_callback_url: isGraded === false ? null : this.#listener.callbackUrl(id, 'grader'),
    });
  }

  async #ended(id: string, signal: AbortSignal): Promise<RolloutEnd> {
    const limitMs = this.#options.callbackTimeoutMs ?? Infinity;
    if (!Number.isFinite(limitMs)) return await this.#rendezvous.ended(id, signal);
    using link = new LinkedAbort([signal]);
    const timer = this.#clock.sleep(limitMs, link.signal);
    const late = timer.then(() => this.#rendezvous.timeOut(id));
    try {
      return await Promise.race([this.#rendezvous.ended(id, signal), late]);
    } finally {
      late.catch(() => undefined);
      link.abort(new Error('the rollout has ended'));
    }
  }
}

function resultOf(end: RolloutEnd): Omit<ControllerResult, 'attempts' | 'bodies'> {
  const last = end.grader ?? end.completion;
  const sample = end.grader?.['sample'] as Readonly<Record<string, unknown>> | null | undefined;
  const reward = sample?.['reward'];
  const isSuccess = end.by === 'callback' && last?.['status'] === 'success';
  return {
    id: end.rolloutId,
    status: end.by === 'callback' ? (isSuccess ? 'success' : 'failure') : end.by,
    reward: typeof reward === 'number' ? reward : null,
    completion: end.completion,
    grader: end.grader,
  };
}
