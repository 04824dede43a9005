/** The tables at the end of a job: one per eval group, then failures by code, phase times and where the results are. */
import type { EvalGroup, JobOutcome, JobReport, TrialSummary } from '../app/run-job.ts';
import type { EvalCoverage, EvalStats } from '../wire/harbor/job-result.ts';
import { plainText } from './plain-text.ts';
import { counted, formatDuration, formatNumber } from './table.ts';
import { noTokenIdsText } from './verdict-text.ts';
import { trialTable } from './trial-table.ts';

export interface SummaryOptions {
  /** Take Harbor's numbers, in which a trial without a verdict is a 0. */
  readonly countFailuresAsZero: boolean;
}

export function renderSummary(outcome: JobOutcome, options: SummaryOptions): string {
  const { report } = outcome;
  const groups = report.groups.flatMap((group) => {
    const stats = report.result.stats.evals[group.key];
    return stats === undefined ? [] : [renderGroup(group, stats, options)];
  });
  return [...groups, closingLines(outcome)].join('\n\n');
}

function renderGroup(group: EvalGroup, stats: EvalStats, options: SummaryOptions): string {
  const title = [group.source, group.agentName, group.modelName]
    .filter((part) => part !== null)
    .join(' • ');
  const parts = [
    title,
    trialTable(group.trials),
    numbersLine(stats, options),
    ...failureList(group.trials),
  ];
  return parts.join('\n');
}

/** What is averaged over is always said. */
function numbersLine(stats: EvalStats, options: SummaryOptions): string {
  const own = options.countFailuresAsZero ? null : stats.slipway;
  const metrics = (own?.metrics ?? stats.metrics).flatMap((values) =>
    Object.entries(values).map(
      ([name, value]) =>
        `${name} ${typeof value === 'number' ? formatNumber(value) : String(value)}`,
    ),
  );
  const passAtK = Object.entries(own?.pass_at_k ?? stats.pass_at_k).map(
    ([k, value]) => `pass@${k} ${formatNumber(value)}`,
  );
  const numbers = [...metrics, ...passAtK];
  return `${numbers.length === 0 ? 'no number' : numbers.join('  ')}  over ${basis(stats, own)}`;
}

function basis(stats: EvalStats, own: EvalCoverage | null): string {
  if (own === null) {
    const total = stats.n_trials + (stats.slipway?.n_uncounted ?? stats.n_errors);
    return `all ${counted(total, 'trial')}, those without a verdict as 0`;
  }
  const infrastructure =
    own.n_infrastructure_failures === 0
      ? ''
      : `, ${own.n_infrastructure_failures} of them infrastructure failures`;
  const uncounted =
    own.n_uncounted === 0
      ? ''
      : `; ${own.n_uncounted} without a verdict not counted${infrastructure}`;
  return `${counted(own.n_counted, 'trial')}${uncounted}`;
}

/** A paragraph per code: messages and remedies are too long for columns. */
function failureList(trials: readonly TrialSummary[]): string[] {
  const failed = trials.flatMap(({ trialName, failure }) =>
    failure === null ? [] : [{ trialName, failure }],
  );
  const grouped = Map.groupBy(failed, ({ failure }) => failure.code ?? failure.exceptionType);
  return [...grouped].flatMap(([code, members]) => {
    const [first] = members;
    if (first === undefined) return [];
    const { category, field, message, remedy } = first.failure;
    const where = field === null ? '' : ` [${field}]`;
    const which = members.length === 1 ? first.trialName : `the first ${first.trialName}`;
    return [
      '',
      `${code} (${category}): ${counted(members.length, 'trial')}, ${which}`,
      ...[`${message.split('\n')[0] ?? ''}${where}`, ...(remedy === null ? [] : [remedy])].map(
        (line) => `  ${plainText(line)}`,
      ),
    ];
  });
}

function closingLines(outcome: JobOutcome): string {
  const { report, environment } = outcome;
  const { stats } = report.result;
  const tokens =
    stats.n_input_tokens === null && stats.n_output_tokens === null
      ? []
      : [`tokens: ${stats.n_input_tokens ?? 0} in, ${stats.n_output_tokens ?? 0} out`];
  return [
    `${countText(report)} in ${formatDuration(outcome.durationMs)} on ${environment.kind} (isolation: ${environment.isolation})`,
    ...tokens,
    ...tokenIdsLine(report.trials),
    ...(report.notStarted > 0
      ? [
          `${counted(report.notStarted, 'trial')} not started: slipway jobs resume -p ${outcome.dir}`,
        ]
      : []),
    ...(stats.n_errored_trials > 0
      ? ['what happened to one: slipway trials show <trial folder>']
      : []),
    `results: ${outcome.dir}`,
  ].join('\n');
}

/** Whoever asked for ids to train on learns it here, not when the trainer starts. */
function tokenIdsLine(trials: readonly TrialSummary[]): string[] {
  const lacking = trials.filter(({ lacksTokenIds }) => lacksTokenIds).length;
  if (lacking === 0) return [];
  return [
    `collect_rollout_details: ${noTokenIdsText} in ${lacking} of ${counted(trials.length, 'trial')}`,
  ];
}

function countText({ result }: JobReport): string {
  const { stats } = result;
  const parts = [`${stats.n_completed_trials} of ${counted(result.n_total_trials, 'trial')} ended`];
  if (stats.n_errored_trials > 0) parts.push(`${stats.n_errored_trials} with errors`);
  if (stats.n_cancelled_trials > 0) parts.push(`${stats.n_cancelled_trials} cancelled`);
  if (stats.n_retries > 0) parts.push(counted(stats.n_retries, 'retry', 'retries'));
  return parts.join(', ');
}
