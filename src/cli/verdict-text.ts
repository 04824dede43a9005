import type { TrialSummary } from '../app/run-job.ts';
import { formatNumber } from './table.ts';

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
  return parts.length === 0 ? 'no verdict' : parts.join(', ');
}
