/**
 * Runs what is pending: each item becomes one rollout, at most so many at once. Its end is in the journal before the server hears that it was taken, so
 * that an acknowledged item is never run again. What says nothing about an item gives it back: an interruption, a server or a model that is gone; then
 * nothing more is begun.
 */
import { randomBytes } from 'node:crypto';
import { RolloutController } from '../../callbacks/rollout-controller.ts';
import type { RolloutEnd } from '../../callbacks/callback-rendezvous.ts';
import { SubmissionRefused } from '../../callbacks/rollout-submitter.ts';
import type { EvalConfig } from '../../config/eval/read-eval-config.ts';
import type { Clock } from '../../core/clock.ts';
import { cutText } from '../../core/cut-text.ts';
import { attribute, messageOf, RolloutError } from '../../core/errors.ts';
import { LinkedAbort, never } from '../../core/linked-abort.ts';
import { ServerClient } from '../server-client.ts';
import { classifyEnd, failed, mayBeOutage, type ItemEnd } from './classify-end.ts';
import type { Dataset } from './dataset.ts';
import type { EvalEvent } from './eval-events.ts';
import type { EvalFolder } from './eval-folder.ts';
import type { EvalItem } from './eval-items.ts';
import type { EvalServer } from './eval-server.ts';
import { ItemCollector } from './item-collector.ts';
import { probeModel, type ProbedModel } from './model-probe.ts';
import { waitUntilOver } from './wait-until-over.ts';

export interface DispatchParts {
  readonly config: EvalConfig;
  readonly dataset: Dataset;
  readonly folder: EvalFolder;
  readonly server: EvalServer;
  readonly model: ProbedModel | null;
  readonly clock: Clock;
  /** Makes the event durable, then applies it. */
  readonly record: (event: EvalEvent) => Promise<void>;
  readonly onItem: (item: EvalItem) => void;
  readonly note: (text: string) => void;
}

interface Live {
  readonly item: EvalItem;
  readonly sinceMs: number;
}

const maxMessageLength = 2_000;
const watchMs = 2_000;
const missedLooks = 3;

export class EvalDispatch {
  readonly #parts: DispatchParts;
  readonly #controller: RolloutController;
  readonly #live = new Map<string, Live>();
  readonly #collector: ItemCollector;
  readonly #returned: string[] = [];
  /** Ends everything: nothing that goes on could be written down. */
  readonly #unwritable = new LinkedAbort([]);
  #halted: RolloutError | null = null;

  constructor(parts: DispatchParts) {
    this.#parts = parts;
    const { url, key } = parts.server;
    const { folder, clock, note } = parts;
    this.#collector = new ItemCollector({
      client: new ServerClient({ url, key }, { fetch }),
      ...{ folder, clock, note },
      record: (event) => this.#record(event),
    });
    this.#controller = new RolloutController({
      ...{ serverUrl: url, clock, callbackTimeoutMs: parts.config.itemTimeoutMs },
      ...(key !== null && { serverKey: key }),
      commit: (end) => this.#commit(end),
      onConflict: (rolloutId) => note(`${rolloutId}: a later callback says something else`),
    });
  }

  /** Why it was halted; null = everything that was pending was run, or `signal` fired. Rejects when the journal cannot be written. */
  async run(
    pending: readonly EvalItem[],
    { concurrency, signal }: { readonly concurrency: number; readonly signal: AbortSignal },
  ): Promise<RolloutError | null> {
    using life = new LinkedAbort([signal, this.#unwritable.signal]);
    using watching = new LinkedAbort([life.signal]);
    await this.#controller.start();
    const watch = this.#watch(life, watching.signal);
    void this.#parts.server.lost.then((error) => {
      const why = attribute(error, 'BACKEND_LOST', 'server', 'the server lost a part of it');
      this.#halt(why);
      life.abort(why);
    });
    const queue = pending.values();
    try {
      const workers = Array.from({ length: Math.min(concurrency, pending.length) }, async () => {
        for (const item of queue) {
          if (this.#halted !== null || life.signal.aborted) return;
          await this.#runItem(item, life);
        }
      });
      const ends = await Promise.allSettled(workers);
      const wrong = ends.find((end) => end.status === 'rejected');
      if (wrong !== undefined) throw wrong.reason;
      return this.#halted;
    } finally {
      watching.abort(new Error('nothing runs any more'));
      await watch;
      await this.#collector.settled();
      if (!this.#parts.server.isOwn && this.#returned.length > 0)
        await waitUntilOver(this.#returned, this.#parts);
      await this.#controller.close();
    }
  }

  /** What an earlier life of the evaluation left with a server that runs on. */
  async takeUp(items: readonly EvalItem[], left: readonly string[]): Promise<void> {
    if (left.length > 0) await this.#controller.cancel(left).catch(() => undefined);
    for (const item of items) this.#collector.collect(item);
  }

  async #runItem(item: EvalItem, life: LinkedAbort): Promise<void> {
    const { config, dataset, model, clock } = this.#parts;
    const { rowIndex, runIndex } = item;
    const { messages, label, metadata } = await dataset.row(rowIndex);
    const id = `${config.name}-${rowIndex}-${runIndex}-${randomBytes(6).toString('hex')}`;
    await this.#record({ type: 'item:started', ...this.#at(item, id) });
    this.#live.set(id, { item, sinceMs: clock.monotonicMs() });
    const { agentTimeoutSec, graderTimeoutSec } = config;
    try {
      await this.#controller.run(
        {
          rollout_id: id,
          initial_messages: messages,
          chat_completions_url: model?.url ?? '',
          ...(model?.key != null && { llm_api_key: model.key }),
          ...(label !== null && { label }),
          ...(metadata !== null && { metadata }),
          ...(agentTimeoutSec !== null && { agent_timeout_sec: agentTimeoutSec }),
          ...(graderTimeoutSec !== null && { grader_timeout_sec: graderTimeoutSec }),
          extra_fields: { row_index: rowIndex, run_index: runIndex },
        },
        life.signal,
      );
      this.#controller.forget(id);
    } catch (error) {
      await this.#notRun(item, id, { error, life });
    } finally {
      this.#live.delete(id);
    }
    if (item.state === 'ended') this.#collector.collect(item);
  }

  async #notRun(
    item: EvalItem,
    id: string,
    { error, life }: { readonly error: unknown; readonly life: LinkedAbort },
  ): Promise<void> {
    // The last callback may have been taken while it was cancelled.
    if (item.state === 'ended') return;
    if (error instanceof SubmissionRefused && isOfTheRow(error.status)) {
      await this.#end(
        id,
        failed(`admission_${error.status}`, { message: error.message, cause: null }),
      );
      return;
    }
    if (item.rolloutId === id && item.state === 'running')
      await this.#return(item, id, messageOf(error));
    if (life.signal.aborted) return;
    const why = haltOf(error);
    this.#halt(why);
    // A journal that cannot be written, or a server that is gone: what runs there ends nowhere.
    life.abort(why);
  }

  /** The end of a rollout, before its callback is acknowledged. */
  async #commit(end: RolloutEnd): Promise<undefined> {
    const live = this.#live.get(end.rolloutId);
    if (live === undefined) return undefined;
    const itemEnd = classifyEnd(end);
    const outage = await this.#outage(itemEnd);
    if (outage === null) await this.#end(end.rolloutId, itemEnd);
    else {
      await this.#return(live.item, end.rolloutId, outage.describe());
      this.#halt(outage);
    }
    return undefined;
  }

  async #outage(end: ItemEnd): Promise<RolloutError | null> {
    const { model } = this.#parts;
    if (end.cause === 'BACKEND_LOST')
      return new RolloutError('BACKEND_LOST', 'the server lost its backend', {
        phase: 'server',
        remedy: 'See in its log why, start it again where it runs elsewhere, then go on.',
      });
    if (model === null || !mayBeOutage(end)) return null;
    if (end.cause === 'ENGINE_UNAUTHORIZED')
      return new RolloutError('ENGINE_UNAUTHORIZED', 'the model refused the key', {
        phase: 'model-call',
        field: 'model.key',
        remedy: 'Give the right key in the variable or file that model.key names, then go on.',
      });
    return await probeModel(model, never);
  }

  async #end(id: string, end: ItemEnd): Promise<void> {
    const live = this.#live.get(id);
    if (live === undefined) return;
    const { clock, onItem } = this.#parts;
    await this.#record({
      type: 'item:ended',
      ...this.#at(live.item, id),
      ...end,
      err_message: end.err_message === null ? null : cutText(end.err_message, maxMessageLength),
      duration_ms: Math.round(clock.monotonicMs() - live.sinceMs),
    });
    onItem(live.item);
  }

  async #return(item: EvalItem, id: string, reason: string): Promise<void> {
    this.#returned.push(id);
    await this.#record({
      type: 'item:returned',
      ...this.#at(item, id),
      reason: cutText(reason, maxMessageLength),
    });
  }

  async #record(event: EvalEvent): Promise<void> {
    try {
      await this.#parts.record(event);
    } catch (error) {
      const why = attribute(error, 'JOURNAL_FAILED', 'queue', 'the journal of the evaluation');
      this.#halt(why);
      this.#unwritable.abort(why);
      throw why;
    }
  }

  #halt(why: RolloutError): void {
    this.#halted ??= why;
  }

  /** A server that runs elsewhere may go away without a word. */
  async #watch(life: LinkedAbort, signal: AbortSignal): Promise<void> {
    const { server, clock } = this.#parts;
    if (server.isOwn) return;
    try {
      for (let missed = 0; ;) {
        await clock.sleep(watchMs, signal);
        const problem = await server.look(signal);
        missed = problem === null ? 0 : missed + 1;
        if (problem === null || missed < missedLooks) continue;
        this.#halt(problem);
        life.abort(problem);
        return;
      }
    } catch {
      // The signal fired: nobody needs to know any more.
    }
  }

  #at(item: EvalItem, rolloutId: string) {
    const at = this.#parts.clock.now().toISOString();
    return {
      ...{ row_index: item.rowIndex, run_index: item.runIndex },
      ...{ rollout_id: rolloutId, at },
    };
  }
}

/** What the server has against this row alone. */
function isOfTheRow(status: number | null): status is number {
  return status !== null && status >= 400 && status < 500 && status !== 401 && status !== 403;
}

function haltOf(error: unknown): RolloutError {
  if (!(error instanceof SubmissionRefused))
    return attribute(error, 'SERVER_UNREACHABLE', 'server', 'the server took no rollout');
  const isKey = error.status === 401 || error.status === 403;
  return new RolloutError(isKey ? 'UNAUTHORIZED' : 'SERVER_UNREACHABLE', error.message, {
    phase: 'server',
    field: isKey ? 'server_key' : 'server_url',
    remedy: isKey
      ? 'Give the key of the server: server_key = "env:NAME", then go on.'
      : 'See what the server says in its log, then go on.',
    cause: error,
  });
}
