/**
 * Rollouts at a server of ours, over HTTP as any trainer uses it: submitted by the rollout protocol, their ends told by its callbacks, outcome and samples read from
 * the API. A cancelled rollout sends no callback: its end is the receipt that the cancellation answered, or what a look at the server finds.
 */
import { randomBytes } from 'node:crypto';
import { CallbackListener, type ListenAddress } from '../../callbacks/callback-listener.ts';
import { CallbackRendezvous } from '../../callbacks/callback-rendezvous.ts';
import { RolloutSubmitter, SubmissionRefused } from '../../callbacks/rollout-submitter.ts';
import type { Clock } from '../../core/clock.ts';
import { messageOf } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { routeRulesKey } from '../../wire/rollout/route-rules.ts';
import { trainKey } from '../../wire/rollout/train-rules.ts';
import type { AbortHook, AbortHookAnswer, AbortHookRequest } from '../abort/abort-hook.ts';
import type { MemberEnd, MemberRequest } from '../member.ts';
import type { RolloutPort } from '../rollout-port.ts';
import { memberEnd } from './end-of-outcome.ts';
import { RolloutApi } from './rollout-api.ts';
import { samplesOfLines } from './samples-of-lines.ts';
import { StateWatch } from './state-watch.ts';

export interface ServerRolloutsOptions {
  /** Of the control listener; a key may be part of it. */
  readonly serverUrl: string;
  readonly serverKey: string | null;
  /** Where the agents' model is; '' = none. */
  readonly modelUrl: string;
  readonly modelKey: string | null;
  /** Whether samples are asked for and read; an object says how they are made (`docs/sessions.md`). */
  readonly train: boolean | Readonly<Record<string, unknown>>;
  /** False: nobody grades, rewards are a hook's. */
  readonly isGraded: boolean;
  readonly agentTimeoutSec: number | null;
  readonly graderTimeoutSec: number | null;
  /** Where the server's callbacks come in. */
  readonly listen: ListenAddress;
  /** Called with the address at which callbacks come in, before any is asked for. */
  readonly onListening?: (url: string) => void;
  /** Called when the server has not answered for a minute, and for every further one: rollouts wait until it does. */
  readonly onSilence?: (minutes: number, problem: string) => void;
  /** How often the server is asked about rollouts of which it said nothing. */
  readonly watchMs: number;
  /** How long a rollout that has ended waits for a server that restarts to say how. Then it is lost. */
  readonly patienceMs: number;
  readonly clock: Clock;
  readonly fetch: typeof fetch;
}

export class ServerRollouts implements RolloutPort {
  readonly #options: ServerRolloutsOptions;
  readonly #api: RolloutApi;
  readonly #submitter: RolloutSubmitter;
  readonly #rendezvous = new CallbackRendezvous();
  readonly #listener: CallbackListener;
  readonly #callbackKey = randomBytes(24).toString('base64url');
  readonly #watch: StateWatch;
  /** On their way to the server. */
  readonly #submitting = new Map<string, LinkedAbort>();
  /** The server said that it ended them for us. */
  readonly #cancelled = new Set<string>();
  #starting: Promise<unknown> | null = null;

  constructor(options: ServerRolloutsOptions) {
    this.#options = options;
    const { serverUrl, serverKey, clock, watchMs } = options;
    this.#api = new RolloutApi(options);
    this.#submitter = new RolloutSubmitter({
      ...{ serverUrl, serverKey, clock, resubmits: true, admissionTimeoutMs: Infinity },
    });
    this.#listener = new CallbackListener({
      rendezvous: this.#rendezvous,
      apiKey: this.#callbackKey,
    });
    this.#watch = new StateWatch({
      ...{ clock, everyMs: watchMs },
      onSilence: (minutes, problem) => options.onSilence?.(minutes, problem),
      hasEnded: async (id, signal) => {
        const rollout = await this.#api.inspect(id, signal);
        return rollout?.ended_at !== null;
      },
      onEnded: (id) => void this.#rendezvous.cancel(id),
    });
  }

  /** SERVER_UNREACHABLE when it does not answer, or does not know us. Rollouts wait for a server that restarts; one that never was there is a mistake. */
  async reach(signal: AbortSignal): Promise<void> {
    await this.#api.inspect('collect', signal);
  }

  async run(request: MemberRequest, signal: AbortSignal): Promise<MemberEnd> {
    const { rolloutId: id } = request;
    this.#starting ??= this.#listen();
    await this.#starting;
    this.#rendezvous.register(id, { isGraded: this.#options.isGraded });
    try {
      await this.#submit(request, signal);
      this.#watch.add(id);
      const { by } = await this.#rendezvous.ended(id, signal);
      return by === 'cancelled' && this.#cancelled.has(id)
        ? cancelledEnd
        : await this.#endOf(id, signal);
    } catch (error) {
      if (error instanceof SubmissionRefused) return refusedEnd(error);
      if (error === submissionCancelled) return cancelledEnd;
      if (signal.aborted) await this.#cancelAlone(id);
      throw error;
    } finally {
      this.#watch.remove(id);
      this.#cancelled.delete(id);
      this.#rendezvous.forget(id);
    }
  }

  /** The agent hook: ends what is live by one request, and answers the server's receipts. */
  readonly abort: AbortHook = async (
    { rolloutIds }: AbortHookRequest,
    signal,
  ): Promise<AbortHookAnswer> => {
    if (rolloutIds.length === 0) return { cancelled: 0, confirmed: [] };
    const receipts = await this.#api.cancel(rolloutIds, signal);
    const confirmed = receipts.map((receipt) => ({
      ...{ rolloutId: receipt.rollout_id, isGone: receipt.is_complete },
      detail: receipt.problem ?? receipt.disposition,
    }));
    for (const { rollout_id: id, disposition } of receipts) {
      // A submission that is still on its way finds that its id was cancelled before it came.
      this.#submitting.get(id)?.abort(submissionCancelled);
      if (disposition === 'not_found' || !this.#watch.has(id)) continue;
      this.#cancelled.add(id);
      await this.#rendezvous.cancel(id);
    }
    const cancelled = receipts.filter(({ disposition }) => disposition !== 'not_found').length;
    return { cancelled, confirmed };
  };

  async close(): Promise<void> {
    await this.#watch.close();
    await this.#listener.close();
    await this.#submitter.close();
  }

  async #listen(): Promise<void> {
    const url = await this.#listener.start(this.#options.listen);
    this.#options.onListening?.(url);
  }

  async #submit(request: MemberRequest, signal: AbortSignal): Promise<void> {
    const { rolloutId } = request;
    using link = new LinkedAbort([signal]);
    this.#submitting.set(rolloutId, link);
    try {
      await this.#submitter.submit(this.#body(request), link.signal);
    } finally {
      this.#submitting.delete(rolloutId);
    }
  }

  #body(request: MemberRequest): string {
    const { modelUrl, modelKey, train, isGraded, agentTimeoutSec, graderTimeoutSec } =
      this.#options;
    const { rolloutId, row, groupIndex, memberIndex, attempt, weightVersion, seed } = request;
    return JSON.stringify({
      ...{ rollout_id: rolloutId, initial_messages: row.messages, label: row.label },
      ...{ chat_completions_url: modelUrl, controller_api_key: this.#callbackKey },
      ...(modelKey !== null && { llm_api_key: modelKey }),
      metadata: {
        ...row.metadata,
        ...(train !== false && { [trainKey]: train }),
        ...(seed !== null && { [routeRulesKey]: seeded(row.metadata[routeRulesKey], seed) }),
      },
      completion_callback_url: this.#listener.callbackUrl(rolloutId, 'completion'),
      grader_callback_url: isGraded ? this.#listener.callbackUrl(rolloutId, 'grader') : null,
      ...{ agent_timeout_sec: agentTimeoutSec, grader_timeout_sec: graderTimeoutSec },
      extra_fields: {
        ...{ group_index: groupIndex, member_index: memberIndex, attempt },
        weight_version: weightVersion,
      },
    });
  }

  async #endOf(id: string, signal: AbortSignal): Promise<MemberEnd> {
    // It has ended: what it came to is there when the server is again.
    const patience = { patienceMs: this.#options.patienceMs };
    let rollout = await this.#api.inspect(id, signal, patience);
    // A callback may come before the end: whoever is not asked for a grade is told when the agent is done.
    while (rollout !== null && rollout.ended_at === null) {
      await this.#options.clock.sleep(this.#options.watchMs, signal);
      rollout = await this.#api.inspect(id, signal, patience);
    }
    const outcome = rollout?.outcome ?? null;
    if (outcome === null) return cancelledEnd;
    const hasSamples = (outcome.samples?.count ?? 0) > 0;
    const text = hasSamples ? await this.#api.samples(id, signal, patience) : null;
    const { samples, wasAborted } = samplesOfLines(text ?? '');
    const { verdict, stage } = outcome;
    return memberEnd(outcome, { samples, wasAborted, metadata: { verdict, stage } });
  }

  /** Nobody waits any more. Within the time that the server has for an answer. */
  async #cancelAlone(id: string): Promise<void> {
    using link = new LinkedAbort([], { ms: 5_000, reason: () => new Error('no answer') });
    await this.#api.cancel([id], link.signal).catch(() => undefined);
  }
}

/** Rules of a row with the seed of a place. */
function seeded(rules: unknown, seed: number): Readonly<Record<string, unknown>> {
  const own = tableOf(rules);
  return { ...own, sampling: { ...tableOf(own['sampling']), seed } };
}

function tableOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Readonly<Record<string, unknown>>)
    : {};
}

const submissionCancelled = new Error('the rollout was cancelled before it was submitted');

const cancelledEnd: MemberEnd = {
  ...{ status: 'aborted', fault: 'cancelled', cause: 'CANCELLED', message: 'it was cancelled' },
  ...{ isRetryable: true, reward: null, samples: [], metadata: {} },
};

/** 422 is a mistake of the row; anything else may pass. Ids are never used twice: where one is taken, an abort has named it before it came. */
function refusedEnd(refusal: SubmissionRefused): MemberEnd {
  if (refusal.status === 409) return cancelledEnd;
  const isTask = refusal.status === 422;
  return {
    ...{ status: 'failed', fault: isTask ? 'task' : 'infrastructure', isRetryable: !isTask },
    ...{ cause: isTask ? 'REQUEST_INVALID' : 'SUBMISSION_REFUSED', message: messageOf(refusal) },
    ...{ reward: null, samples: [], metadata: {} },
  };
}
