import { resolve } from 'node:path';
import { RolloutError } from '../core/errors.ts';
import { compareTrials, type Comparison, type ScoredTrial } from '../jobs/comparison.ts';
import { JobFolder } from '../jobs/job-folder.ts';
import { standingOf, summarize, type TrialSummary } from '../jobs/trial-summary.ts';

export interface CompareOptions {
  readonly dirs: readonly [string, string];
  /** null = the only channel, or `reward` among several. */
  readonly channel: string | null;
  /** As written on the command line. */
  readonly seed: string;
  readonly resamples: string;
}

export interface JobComparison extends Comparison {
  readonly a: string;
  readonly b: string;
  readonly channel: string;
  readonly seed: number;
  readonly resamples: number;
}

/** Pairs trials by task and attempt; the attempts at a task are numbered in the order in which they started. */
export async function compareJobs(options: CompareOptions): Promise<JobComparison> {
  const seed = wholeNumber(options.seed, '--seed', 0);
  const resamples = wholeNumber(options.resamples, '--resamples', 100);
  const [dirA, dirB] = options.dirs;
  const trials = [await finishedTrials(dirA), await finishedTrials(dirB)] as const;
  const channel = options.channel ?? soleChannel(trials.flat());
  const byAgent = trials.some((job) => agentsOf(job).size > 1);
  const [a, b] = trials.map((job) => scored(job, { channel, byAgent }));
  const comparison = compareTrials(a ?? [], b ?? [], { seed, resamples });
  return { a: dirA, b: dirB, channel, seed, resamples, ...comparison };
}

function wholeNumber(text: string, field: string, min: number): number {
  const value = text.trim() === '' ? Number.NaN : Number(text);
  if (Number.isSafeInteger(value) && value >= min && value <= 1_000_000) return value;
  throw new RolloutError(
    'CONFIG_INVALID',
    `“${text}” is not a whole number from ${min} to 1000000`,
    {
      phase: 'config',
      field,
      remedy: `Give a whole number of at least ${min}.`,
    },
  );
}

/** JOB_UNREADABLE when the folder holds no finished trial. */
async function finishedTrials(dir: string): Promise<TrialSummary[]> {
  const stored = await new JobFolder(resolve(dir)).trials();
  const trials = stored.flatMap((trial) =>
    trial.state === 'finished' ? [summarize(trial.result)] : [],
  );
  if (trials.length > 0) return trials;
  throw new RolloutError('JOB_UNREADABLE', `${dir} holds no finished trial`, {
    phase: 'config',
    field: dir,
    remedy: 'Name a job folder, as slipway run prints it.',
  });
}

function soleChannel(trials: readonly TrialSummary[]): string {
  const channels = new Set(trials.flatMap(({ rewards }) => Object.keys(rewards ?? {})));
  if (channels.size === 1) return [...channels][0] ?? 'reward';
  if (channels.size === 0 || channels.has('reward')) return 'reward';
  throw new RolloutError('CONFIG_INVALID', 'the jobs have several reward channels', {
    phase: 'config',
    field: '--channel',
    remedy: `Choose one of ${[...channels].sort().join(', ')}.`,
  });
}

const agentOf = ({ agentName, modelName }: TrialSummary): string =>
  JSON.stringify([agentName, modelName]);

function agentsOf(trials: readonly TrialSummary[]): Set<string> {
  return new Set(trials.map(agentOf));
}

function scored(
  trials: readonly TrialSummary[],
  options: { readonly channel: string; readonly byAgent: boolean },
): ScoredTrial[] {
  const taskOf = (trial: TrialSummary): string =>
    options.byAgent ? `${agentOf(trial)} ${trial.taskName}` : trial.taskName;
  const inOrder = trials.toSorted((a, b) => compareText(startOf(a), startOf(b)));
  return [...Map.groupBy(inOrder, taskOf)].flatMap(([task, group]) =>
    group.map((trial, attempt) => ({ task, attempt, reward: rewardOf(trial, options.channel) })),
  );
}

function startOf(trial: TrialSummary): string {
  return `${trial.startedAt ?? ''} ${trial.trialName}`;
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** A failed agent without a verdict is a 0, as in the averages of a job; everything else without one is unpaired. */
function rewardOf(trial: TrialSummary, channel: string): number | null {
  const standing = standingOf(trial);
  if (standing === 'uncounted') return null;
  return standing === 'agent-failed' ? 0 : (trial.rewards?.[channel] ?? null);
}
