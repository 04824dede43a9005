/** What `slipway eval run` prints: the plan, a line per run of a row, the numbers at the end. */
import { failureOf, type EvalItem, type EvalOutcome, type EvalPlan } from '../app/run-eval.ts';
import { plainText } from './plain-text.ts';
import { counted, formatDuration, formatNumber, renderTable } from './table.ts';

export function planText(plan: EvalPlan): string {
  const rows: readonly (readonly [string, string])[] = [
    ['dataset', `${plan.dataset} (${plan.mode} mode)`],
    ['rows', `${plan.rows}, each run ${counted(plan.repeats, 'time')}`],
    ['to run', `${plan.pending} of ${plan.rows * plan.repeats}`],
    ['model', plan.model ?? 'none'],
    ['server', plan.server],
    ['at once', plan.atOnce === null ? 'as many as the server takes' : `at most ${plan.atOnce}`],
    ['limit of a run', formatDuration(plan.itemTimeoutMs)],
    ['results', plan.dir],
  ];
  return renderTable(['evaluation', ''], rows);
}

export function itemText(item: EvalItem, ended: number, total: number): string {
  const { rowIndex, runIndex, ended: end } = item;
  const verdict =
    end?.status === 'success'
      ? `reward ${end.reward === null ? '–' : formatNumber(end.reward)}`
      : end?.status === 'skipped'
        ? 'skipped'
        : `failed: ${failureOf(item)}`;
  return `[${ended}/${total}] row ${rowIndex} run ${runIndex}: ${verdict}, ${formatDuration(end?.duration_ms ?? 0)}`;
}

export function outcomeText({ items, metrics, dir, halted, resumed }: EvalOutcome): string {
  const { slipway } = metrics;
  const rate = (value: number | null): string => (value === null ? '–' : formatNumber(value));
  const ks = [...new Set([metrics, slipway].flatMap((one) => Object.keys(one.pass_at_k)))];
  const columns = (of: typeof slipway | typeof metrics): readonly string[] => [
    `${of.passed} of ${of.scored}`,
    rate(of.pass_rate),
    ...ks.map((k) => rate(of.pass_at_k[k] ?? null)),
    of.reward === null ? '–' : `${formatNumber(of.reward.mean)} ± ${formatNumber(of.reward.std)}`,
  ];
  const table = renderTable(
    ['over', 'passed', 'pass rate', ...ks.map((k) => `pass@${k}`), 'mean of rewards'],
    [
      ['runs with a verdict, or failed by the agent', ...columns(slipway)],
      ['all runs, failures as not passed', ...columns(metrics)],
    ],
  );
  const uncounted =
    slipway.uncounted === 0
      ? []
      : [
          `${counted(slipway.uncounted, 'run')} without a verdict not counted in the first line, ${slipway.infrastructure_failures} of them infrastructure failures`,
        ];
  return [
    table,
    `passed: reward of at least ${formatNumber(metrics.pass_threshold)}`,
    ...uncounted,
    ...failureLines(items),
    countText(metrics, resumed),
    ...(metrics.tokens === null ? [] : [`tokens: ${metrics.tokens}`]),
    ...(metrics.pending === 0
      ? []
      : [
          `${counted(metrics.pending, 'run')} pending: the same command goes on${halted === null ? '' : ' when this is corrected'}`,
        ]),
    `results: ${dir}`,
  ].join('\n');
}

function countText(metrics: EvalOutcome['metrics'], resumed: number): string {
  const ended = metrics.total - metrics.pending;
  const before = resumed === 0 ? '' : `, ${resumed} of them before`;
  return `${ended} of ${counted(metrics.total, 'run')} ended${before}: ${metrics.success} success, ${metrics.failed} failed, ${metrics.skipped} skipped`;
}

/** A paragraph per cause. */
function failureLines(items: readonly EvalItem[]): readonly string[] {
  const failed = items.filter(({ ended }) => ended?.status === 'failed');
  return [...Map.groupBy(failed, failureOf)].flatMap(([cause, members]) => {
    const [first] = members;
    const message = first?.ended?.err_message?.split('\n')[0] ?? '';
    return [
      `${cause}: ${counted(members.length, 'run')}, the first row ${first?.rowIndex} run ${first?.runIndex}`,
      ...(message === '' ? [] : [`  ${plainText(message)}`]),
    ];
  });
}
