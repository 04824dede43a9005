/**
 * One rollout of the backend `local`: a worker → the artifact folder → the workflow → the grader. The controller's limit runs from acceptance to the
 * end of the workflow; the grader has its own. What overruns is told so through its signal, and ended with its worker if it goes on. Whatever the
 * code answers afterwards, it has overrun.
 */
import { cutText } from '../../core/cut-text.ts';
import { isRolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { raceSignal } from '../../core/race-signal.ts';
import { TrajectoryRedactor } from '../../trajectory/redact.ts';
import type { Sample } from '../../wire/rollout/callback-payloads.ts';
import type { WaitKind } from '../../wire/rollout/progress.ts';
import type {
  AbortReceipt,
  ArchivedFiles,
  Execution,
  ExecutionHooks,
  ExecutionRequest,
  ExecutionResult,
} from '../execution-backend.ts';
import { interim } from '../shared/interim-diagnostics.ts';
import type { UsedFolder } from '../shared/rollout-folders.ts';
import type { LocalBackendParts } from './local-backend.ts';
import type { LocalOptions, UserConfig } from './local-options.ts';
import { carryOut, Overrun, type LimitedOrder, type OrderEnd } from './limited-order.ts';
import {
  failed,
  graded,
  notGraded,
  overran,
  toSample,
  workflowBudgetMs,
  workerLost,
  workflowEnded,
  type LocalEnding,
  type LocalFailure,
} from './local-result.ts';
import type { RolloutWorker } from './rollout-worker.ts';
import type { ThreadSample } from './thread-messages.ts';
import type { WorkerPool } from './worker-pool.ts';
import { WorkFolder } from './work-folder.ts';

const abortLimitMs = 1_800;
const maxPrintedLength = 256 * 1024;
/** What a worker that cannot be made ready is refused with. */
const notReady: ReadonlySet<string> = new Set([
  'WORKFLOW_INVALID',
  'WORKFLOW_PACKAGE_MISSING',
  'RUNNER_FAILED',
]);

export interface LocalExecutionParts extends Pick<LocalBackendParts, 'clock' | 'logger'> {
  readonly trialsDir: string;
  readonly options: LocalOptions;
  readonly pool: WorkerPool;
  /** Where its work folder is. */
  readonly folder: UsedFolder;
}

export class LocalExecution implements Execution {
  readonly result: Promise<ExecutionResult>;
  readonly #request: ExecutionRequest;
  readonly #hooks: ExecutionHooks;
  readonly #parts: LocalExecutionParts;
  readonly #folder: WorkFolder;
  readonly #redactor: TrajectoryRedactor;
  readonly #aborted = new LinkedAbort([]);
  readonly #timings: Record<string, number> = {};
  #stage = 'queued';
  #printed = '';
  #receipt: Promise<AbortReceipt> | null = null;
  #released: Promise<void> | null = null;
  /** By its controller, who has no use for what is there; after any other abort somebody may. */
  #isCancelled = false;

  constructor(request: ExecutionRequest, hooks: ExecutionHooks, parts: LocalExecutionParts) {
    this.#request = request;
    this.#hooks = hooks;
    this.#parts = parts;
    this.#folder = new WorkFolder(parts.trialsDir, request.id);
    this.#redactor = new TrajectoryRedactor(request.secrets);
    this.result = this.#run();
    this.result.catch(() => undefined); // nobody looks at it after an abort
  }

  release(archived: ArchivedFiles = { isComplete: true }): Promise<void> {
    this.#released ??= this.#releaseNow(archived);
    return this.#released;
  }

  abort(reason: Error): Promise<AbortReceipt> {
    if (isRolloutError(reason, 'CANCELLED')) this.#isCancelled = true;
    this.#receipt ??= this.#abortNow(reason);
    return this.#receipt;
  }

  async #releaseNow({ isComplete }: ArchivedFiles): Promise<void> {
    const { logger, folder } = this.#parts;
    try {
      const mayStay = !isComplete && !this.#isCancelled;
      if (mayStay && (await this.#folder.files(this.#printed)).length > 0) {
        const fields = { rollout: this.#request.id, folder: this.#folder.path };
        logger.log('warn', 'not everything of a rollout was archived: its folder stays', fields);
      } else await this.#folder.remove();
    } finally {
      await folder.leave();
    }
  }

  async #abortNow(reason: Error): Promise<AbortReceipt> {
    const stage = this.#stage;
    this.#aborted.abort(reason);
    using limit = new LinkedAbort([], { ms: abortLimitMs, reason: () => new Error('still alive') });
    const isGone = await raceSignal(this.result, limit.signal).then(
      () => true,
      () => !limit.signal.aborted,
    );
    const { noun } = this.#parts.pool;
    const problem = isGone ? null : `the ${noun} is still there`;
    const confirmedGone = isGone ? [noun] : [];
    return { stage, processesKilled: 0, confirmedGone, isComplete: isGone, problem };
  }

  async #run(): Promise<ExecutionResult> {
    const { agentTimeoutMs, queuedMs } = this.#request;
    const budgetMs = workflowBudgetMs(agentTimeoutMs, queuedMs);
    const since = this.#parts.clock.monotonicMs();
    const { pool } = this.#parts;
    using limit = new LinkedAbort([this.#aborted.signal], {
      ms: budgetMs,
      reason: () => new Overrun('the deadline has passed'),
    });
    this.#timings['queued'] = seconds(queuedMs);
    if (budgetMs === 0) return await this.#result(failed(this.#workflowOverran(0), null));
    this.#tell(`waiting for a ${pool.noun}`, 'workflow', limitOf(budgetMs));
    try {
      const ending = await pool.withWorker(limit.signal, async (worker) => {
        worker.onPrint = (text) => this.#print(text);
        return await this.#runIn(worker, { limit, since, budgetMs });
      });
      return await this.#result(ending);
    } catch (error) {
      this.#aborted.signal.throwIfAborted();
      if (isRolloutError(error) && notReady.has(error.code)) {
        const { message, code } = error;
        const lost = workerLost('workflow', { message, isForeign: code === 'RUNNER_FAILED' });
        return await this.#result(failed(lost, null));
      }
      if (!(error instanceof Overrun)) throw error;
      const waitedMs = this.#parts.clock.monotonicMs() - since;
      return await this.#result(failed(this.#workflowOverran(waitedMs), null));
    }
  }

  async #runIn(
    worker: RolloutWorker,
    at: { readonly limit: LinkedAbort; readonly since: number; readonly budgetMs: number },
  ): Promise<{ readonly value: LocalEnding; readonly isIdle: boolean }> {
    const { limit, budgetMs } = at;
    await raceSignal(worker.ready, limit.signal);
    await raceSignal(this.#parts.folder.isFree, limit.signal);
    const artifactsDir = await this.#folder.create(this.#parts, limit.signal);
    await this.#hooks.agentBegins();
    limit.signal.throwIfAborted();
    const waitedMs = this.#parts.clock.monotonicMs() - at.since;
    const limitMs = budgetMs - waitedMs;
    this.#tell('running workflow', 'workflow', limitOf(limitMs));
    const { prompt, metadata, route: model } = this.#request;
    const config = plainConfig(this.#parts.options.workflowConfig);
    const rolloutId = this.#request.id;
    const about = { rolloutId, config, prompt, metadata };
    const order = { kind: 'workflow', ...about, artifactsDir, model } as const;
    const ended = await this.#timed(worker, {
      part: 'workflow',
      order,
      signal: limit.signal,
      limitMs,
      overrun: () => this.#workflowOverran(waitedMs),
    });
    limit[Symbol.dispose](); // the grader has time of its own
    if ('failure' in ended) return { value: failed(ended.failure, null), isIdle: ended.isIdle };
    const { label } = this.#request;
    const sample = ended.sample === null ? null : toSample(ended.sample, label);
    const value = workflowEnded(sample);
    if (!this.#request.wantsGrade) return { value, isIdle: ended.isIdle };
    await this.#hooks.workflowCompleted(interim(await this.#result(value)));
    const hindrance = this.#whyNotGraded(sample);
    if (hindrance !== null) return { value: failed(hindrance, sample), isIdle: ended.isIdle };
    const grade = await this.#grade(worker, { sample, text: ended.sample ?? '', artifactsDir });
    return { value: grade.value, isIdle: grade.isIdle && ended.isIdle };
  }

  async #grade(
    worker: RolloutWorker,
    at: {
      readonly sample: Sample | null;
      readonly text: string;
      readonly artifactsDir: string | null;
    },
  ): Promise<{ readonly value: LocalEnding; readonly isIdle: boolean }> {
    const { label, metadata, route: model, graderTimeoutMs } = this.#request;
    const limitMs = graderTimeoutMs === null ? Infinity : Math.max(0, graderTimeoutMs);
    if (limitMs === 0)
      return { value: failed(overran('grader', graderTimeoutMs ?? 0), at.sample), isIdle: true };
    using limit = new LinkedAbort([this.#aborted.signal], {
      ms: limitMs,
      reason: () => new Overrun('the deadline has passed'),
    });
    this.#tell('grading', 'grader', limitOf(limitMs));
    const config = plainConfig(this.#parts.options.graderConfig);
    const { artifactsDir } = at;
    const told = JSON.parse(at.text) as ThreadSample;
    const sample = JSON.stringify({ ...told, label: told.label ?? label });
    const rolloutId = this.#request.id;
    const ended = await this.#timed(worker, {
      part: 'grader',
      order: { kind: 'grade', rolloutId, config, label, metadata, artifactsDir, model, sample },
      signal: limit.signal,
      limitMs,
      overrun: () => overran('grader', limitMs),
    });
    if ('failure' in ended)
      return { value: failed(ended.failure, at.sample), isIdle: ended.isIdle };
    return { value: graded(toSample(ended.sample ?? '', label)), isIdle: ended.isIdle };
  }

  /** Keeps how long it took. Rejects when the rollout is aborted. */
  async #timed(worker: RolloutWorker, order: LimitedOrder): Promise<OrderEnd> {
    const since = this.#parts.clock.monotonicMs();
    try {
      return await carryOut(worker, order);
    } finally {
      this.#timings[order.part] = seconds(this.#parts.clock.monotonicMs() - since);
    }
  }

  #whyNotGraded(sample: Sample | null): LocalFailure | null {
    const { label, metadata } = this.#request;
    if (this.#parts.options.grader === null) return notGraded('there is no grader');
    if (label === null && metadata === null)
      return notGraded('the rollout has neither label nor metadata');
    return sample === null ? notGraded('the workflow answered no sample') : null;
  }

  #workflowOverran(waitedMs: number): LocalFailure {
    const { agentTimeoutMs, queuedMs } = this.#request;
    return overran('workflow', agentTimeoutMs ?? 0, queuedMs + waitedMs);
  }

  async #result(ending: LocalEnding): Promise<ExecutionResult> {
    const { status, failure, outcome } = ending;
    const category = failure?.category ?? null;
    return {
      status,
      sample: ending.sample,
      errMessage: failure === null ? null : this.#redactor.text(failure.message),
      errCategory: category,
      outcome,
      diagnostics: {
        backend: 'local',
        phase: failure === null ? null : failure.phase === 'agent' ? 'workflow' : 'grading',
        category,
        timings_sec: { ...this.#timings },
        outcome,
      },
      trajectory: null,
      files: await this.#folder.files(this.#printed),
    };
  }

  #print(text: string): void {
    if (this.#printed.length >= maxPrintedLength) return;
    const room = maxPrintedLength - this.#printed.length;
    this.#printed += text.length <= room ? text : `${cutText(text, room)}\n[cut off]\n`;
  }

  #tell(stage: string, kind: WaitKind, limitMs: number | null): void {
    this.#stage = stage;
    const since = this.#parts.clock.now();
    const deadline = limitMs === null ? null : new Date(since.getTime() + limitMs);
    this.#hooks.progress({
      stage,
      waitingOn: { kind, owner: kind, detail: null, since, deadline },
      lastProgressAt: since,
    });
  }
}

/** Python has the objects itself. */
function plainConfig(config: UserConfig): Readonly<Record<string, unknown>> {
  return 'table' in config ? config.table : {};
}

function limitOf(ms: number): number | null {
  return Number.isFinite(ms) ? ms : null;
}

function seconds(ms: number): number {
  return Math.round(ms) / 1000;
}
