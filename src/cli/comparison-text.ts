import type { JobComparison } from '../app/compare-jobs.ts';
import { counted, formatNumber, renderTable } from './table.ts';

export function renderComparison(result: JobComparison): string {
  const { interval, difference, signTestP } = result;
  const rows = [
    ['A', result.a, result.meanA],
    ['B', result.b, result.meanB],
  ] as const;
  const lines = [
    renderTable(['', 'job', `mean ${result.channel}`], rows),
    '',
    `${counted(result.pairs, 'pair')} over ${counted(result.tasks, 'task')}; unpaired trials ${result.unpaired}`,
  ];
  if (difference === null) return [...lines, 'no pair has a verdict in both jobs'].join('\n');
  const spread =
    interval === null
      ? 'no interval from a single task'
      : `95 % interval ${formatNumber(interval.low)} to ${formatNumber(interval.high)} ` +
        `(bootstrap over tasks, ${result.resamples} resamples, seed ${result.seed})`;
  return [
    ...lines,
    `B − A  ${formatNumber(difference)}   ${spread}`,
    `B wins ${result.wins}, A wins ${result.losses}, ties ${result.ties}` +
      (signTestP === null ? '' : `   sign test p = ${formatNumber(signTestP)}`),
  ].join('\n');
}
