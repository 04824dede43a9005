/** What `slipway run --json` prints: one JSON document for programs. Its shape only grows. */
import type { JobOutcome, TrialSummary } from '../app/run-job.ts';

export function runDocument(outcome: JobOutcome, exitCode: number): Record<string, unknown> {
  const { report } = outcome;
  const { stats, n_total_trials } = report.result;
  return {
    schema_version: 1,
    job: { id: outcome.jobId, name: outcome.jobName, dir: outcome.dir },
    environment: outcome.environment,
    status: report.notStarted === 0 ? 'finished' : 'interrupted',
    exit_code: exitCode,
    duration_ms: Math.round(outcome.durationMs),
    counts: {
      total: n_total_trials,
      completed: stats.n_completed_trials,
      errored: stats.n_errored_trials,
      cancelled: stats.n_cancelled_trials,
      not_started: report.notStarted,
      retries: stats.n_retries,
    },
    evals: report.groups.map((group) => ({
      agent: group.agentName,
      model: group.modelName,
      source: group.source,
      ...stats.evals[group.key],
    })),
    trials: report.trials.map(trialDocument),
  };
}

export function trialDocument(trial: TrialSummary): Record<string, unknown> {
  const { failure } = trial;
  return {
    trial_name: trial.trialName,
    task_name: trial.taskName,
    source: trial.source,
    agent: trial.agentName,
    model: trial.modelName,
    rewards: trial.rewards,
    failure: failure && {
      code: failure.code,
      exception_type: failure.exceptionType,
      category: failure.category,
      phase: failure.phase,
      field: failure.field,
      message: failure.message,
      remedy: failure.remedy,
    },
    turns: trial.turns,
    lacks_token_ids: trial.lacksTokenIds,
    tokens: {
      input: trial.tokens.input,
      cache: trial.tokens.cache,
      output: trial.tokens.output,
    },
    phase_times: trial.phaseTimes,
  };
}
