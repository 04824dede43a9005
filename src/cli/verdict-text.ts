import type { JobEvent, TrialSummary } from '../app/run-job.ts';
import { plainText } from './plain-text.ts';
import { counted, formatDuration, formatNumber } from './table.ts';

/** Of trials that were asked for them. */
export const noTokenIdsText = 'no token ids (does the engine give them?)';

/** `reward 1`, `correctness 0.5, style 1` or the failure in one line. */
export function verdictText({ rewards, failure }: TrialSummary): string {
  const channels = Object.entries(rewards ?? {}).map(
    ([channel, value]) => `${channel} ${formatNumber(value)}`,
  );
  const problem =
    failure === null
      ? []
      : [
          `${failure.code ?? failure.exceptionType}${failure.field === null ? '' : ` [${failure.field}]`}: ${failure.message.split('\n')[0] ?? ''}` +
            (failure.remedy === null ? '' : ` — ${failure.remedy}`),
        ];
  const parts = [...channels, ...problem];
  return parts.length === 0 ? 'no verdict' : plainText(parts.join(', '));
}

/** The same for a column of a table: of a failure its code only. */
export function shortVerdictText({ rewards, failure }: TrialSummary): string {
  const channels = Object.entries(rewards ?? {}).map(
    ([channel, value]) => `${channel} ${formatNumber(value)}`,
  );
  const problem = failure === null ? [] : [failure.code ?? failure.exceptionType];
  const parts = [...channels, ...problem];
  return parts.length === 0 ? 'no verdict' : plainText(parts.join(', '));
}

/** What cancelling a trial did, in one line. */
export function cancellationText({
  trialName,
  receipt,
}: Extract<JobEvent, { readonly type: 'trial:cancelled' }>): string {
  const { killed, is_complete, problem, duration_ms } = receipt;
  const gone = is_complete ? 'everything gone' : `left behind: ${problem ?? 'unknown'}`;
  return `${trialName}: cancelled, ${counted(killed, 'process', 'processes')} killed, ${gone} (${formatDuration(duration_ms)})`;
}
