/**
 * Runs the trials of a job: `n_concurrent_trials` at once, in the order of the plan, each with its retries. No trial can stop
 * another; when `signal` fires the running ones end with their receipts and the others stay pending, to be resumed later.
 */
import type { Clock } from '../core/clock.ts';
import { attribute, RolloutError } from '../core/errors.ts';
import { errorRegistry } from '../core/error-registry.ts';
import type { Logger } from '../core/logger.ts';
import type { HostEndpoint } from '../environments/environment.ts';
import type { TrialObserver } from '../trial/trial-events.ts';
import type { Trial } from '../trial/trial.ts';
import type { TrialRequest } from '../trial/trial-options.ts';
import type { JobConfig } from '../wire/harbor/job-config.ts';
import type { JobResult } from '../wire/harbor/job-result.ts';
import type { TrialResult } from '../wire/harbor/trial-result.ts';
import { AgentPools, type AdmitAgent } from './agent-pools.ts';
import type { EvalGroup } from './eval-groups.ts';
import type { ScriptMetric } from './eval-statistics.ts';
import type { JobEvent, JobObserver } from './job-events.ts';
import type { JobFolder } from './job-folder.ts';
import { JobStatistics, toLocalTime } from './job-statistics.ts';
import { LiveResult } from './live-result.ts';
import type { PlannedTrial } from './plan.ts';
import { mayRetry, retryWaitMs, type RetryPolicy } from './retry-policy.ts';
import type { JobSkills } from './skills.ts';
import { namesOf, summarize, type TrialSummary } from './trial-summary.ts';

/** Makes a trial; everything that trials share is bound already. */
export type TrialFactory = (
  request: TrialRequest,
  hooks: {
    readonly observe: TrialObserver;
    readonly admitAgent: AdmitAgent | undefined;
    /** An address of the host that the sandbox may reach. */
    readonly hostEndpoint?: HostEndpoint | null;
  },
) => Trial;

export interface JobParts {
  readonly folder: JobFolder;
  readonly createTrial: TrialFactory;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly scriptMetric: ScriptMetric;
  readonly skills: Pick<JobSkills, 'load'>;
  readonly observe?: JobObserver;
}

export interface JobPlan {
  readonly id: string;
  readonly config: JobConfig;
  /** Trials that have to run. */
  readonly trials: readonly PlannedTrial[];
  /** Results of an earlier run of this job. */
  readonly finished: readonly TrialResult[];
  readonly retriesBefore: number;
  /** Of the first run; null = now. */
  readonly startedAt: string | null;
}

export interface JobReport {
  readonly result: JobResult;
  readonly trials: readonly TrialSummary[];
  readonly groups: readonly EvalGroup[];
  /** Trials that never began, because the job was cancelled. */
  readonly notStarted: number;
  /** A metric script that failed; the rest of the report stands. */
  readonly metricProblem: RolloutError | null;
}

export class Job {
  readonly #plan: JobPlan;
  readonly #parts: JobParts;
  readonly #pools: AgentPools;
  readonly #retry: RetryPolicy;
  readonly #statistics: JobStatistics;
  readonly #live: LiveResult;
  #notStarted: number;

  /** CONFIG_INVALID for contradicting agent pools. */
  constructor(plan: JobPlan, parts: JobParts) {
    this.#plan = plan;
    this.#parts = parts;
    this.#pools = new AgentPools(plan.config.agents);
    this.#retry = retryPolicy(plan.config);
    this.#notStarted = plan.trials.length;
    this.#statistics = new JobStatistics(
      {
        id: plan.id,
        startedAt: plan.startedAt ?? toLocalTime(parts.clock.now()),
        totalTrials: plan.trials.length + plan.finished.length,
      },
      { ended: plan.finished.map(summarize), retries: plan.retriesBefore },
      parts.clock,
    );
    this.#live = new LiveResult(() => this.#writeLive(), parts.logger);
  }

  /** Resolves when every trial has its result, or, after `signal`, when the running ones have ended. Called once. */
  async run(signal: AbortSignal): Promise<JobReport> {
    const { trials, finished, config } = this.#plan;
    const totalTrials = trials.length + finished.length;
    this.#emit({ type: 'job:started', totalTrials, finishedBefore: finished.length });
    await this.#writeLive();
    const queue = trials.values();
    const work = async (): Promise<void> => {
      for (const trial of queue) {
        if (signal.aborted) return;
        this.#notStarted -= 1;
        await this.#settle(trial, signal);
      }
    };
    await Promise.all(Array.from({ length: config.n_concurrent_trials }, work));
    await this.#live.settled();
    return await this.#report(signal);
  }

  async #settle(planned: PlannedTrial, signal: AbortSignal): Promise<void> {
    this.#statistics.started(planned.config.trial_name);
    this.#live.update();
    const summary = await this.#runWithRetries(planned, signal);
    this.#statistics.ended(summary);
    this.#live.update();
    this.#emit({ type: 'trial:settled', summary });
  }

  async #runWithRetries(planned: PlannedTrial, signal: AbortSignal): Promise<TrialSummary> {
    for (let attempt = 1; ; attempt += 1) {
      const summary = await this.#runOnce(planned, signal);
      const { failure } = summary;
      if (failure === null || signal.aborted) return summary;
      if (!mayRetry(this.#retry, namesOf(failure), attempt)) return summary;
      const waitMs = retryWaitMs(this.#retry, attempt);
      const { trialName } = summary;
      this.#emit({ type: 'trial:retrying', trialName, attempt, waitMs, summary });
      try {
        await this.#parts.clock.sleep(waitMs, signal);
        await this.#parts.folder.removeTrial(planned.config.trial_name);
      } catch (error) {
        this.#log(planned, error);
        return summary;
      }
      this.#statistics.retrying();
    }
  }

  /** A trial that cannot even write its folder fails alone. */
  async #runOnce(planned: PlannedTrial, signal: AbortSignal): Promise<TrialSummary> {
    const { config, task } = planned;
    try {
      const trial = this.#parts.createTrial(
        {
          config,
          taskName: task.name,
          taskId: task.taskId,
          source: task.source,
          queuedAt: this.#parts.clock.now(),
          load: async (loadSignal) => ({
            ...(await task.load(loadSignal)),
            skills: await this.#parts.skills.load(config.agent.skills, loadSignal),
          }),
        },
        { observe: (event) => this.#emit(event), admitAgent: this.#pools.admission(config.agent) },
      );
      return summarize(await trial.run(signal));
    } catch (error) {
      this.#log(planned, error);
      return unrecorded(planned, attribute(error, 'INTERNAL', 'queue', 'the trial broke off'));
    }
  }

  async #report(signal: AbortSignal): Promise<JobReport> {
    const { metrics } = this.#plan.config;
    const isFinished = this.#notStarted === 0;
    let metricProblem: RolloutError | null = null;
    const script: ScriptMetric = async (path, rewards) => {
      if (signal.aborted) return {};
      try {
        return await this.#parts.scriptMetric(path, rewards);
      } catch (error) {
        metricProblem ??= attribute(error, 'CONFIG_INVALID', 'config', 'metric script');
        return {};
      }
    };
    const { result, groups } = await this.#statistics.result({ metrics, script }, { isFinished });
    await this.#parts.folder.write(this.#parts.folder.resultFile, result);
    const { trials } = this.#statistics;
    return { result, groups, trials, notStarted: this.#notStarted, metricProblem };
  }

  async #writeLive(): Promise<void> {
    const { metrics } = this.#plan.config;
    const { result } = await this.#statistics.result(
      { metrics, script: null },
      { isFinished: false },
    );
    await this.#parts.folder.write(this.#parts.folder.resultFile, result);
  }

  #emit(event: JobEvent): void {
    try {
      this.#parts.observe?.(event);
    } catch (error) {
      this.#parts.logger.log('warn', 'an observer of the job failed', { error: String(error) });
    }
  }

  #log(planned: PlannedTrial, error: unknown): void {
    const reason = error instanceof RolloutError ? error.describe() : String(error);
    this.#parts.logger.log('warn', 'trial broke off', {
      trial: planned.config.trial_name,
      reason,
    });
  }
}

function retryPolicy({ retry }: JobConfig): RetryPolicy {
  return {
    maxRetries: retry.max_retries,
    include: retry.include_exceptions === null ? null : new Set(retry.include_exceptions),
    exclude: new Set(retry.exclude_exceptions),
    waitMultiplier: retry.wait_multiplier,
    minWaitMs: retry.min_wait_sec * 1000,
    maxWaitMs: retry.max_wait_sec * 1000,
  };
}

function unrecorded({ config, task }: PlannedTrial, error: RolloutError): TrialSummary {
  const row = errorRegistry[error.code];
  return {
    trialName: config.trial_name,
    taskName: task.name,
    source: task.source,
    agentName: config.agent.name ?? config.agent.import_path ?? 'unknown',
    modelName: config.agent.model_name?.split('/').at(-1) ?? null,
    rewards: null,
    failure: {
      exceptionType: row.harborType,
      code: error.code,
      category: row.category,
      phase: error.phase,
      message: error.message,
      field: error.field,
      remedy: error.remedy,
    },
    tokens: { input: null, cache: null, output: null, costUsd: null },
    turns: null,
    lacksTokenIds: false,
    phaseTimes: {},
    startedAt: null,
  };
}
