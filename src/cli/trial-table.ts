/** One row per trial, at most {@link mostColumns} wide: what nobody needs first goes first, then long task names are cut. */
import type { TrialSummary } from '../app/run-job.ts';
import { phaseColumns, phaseTimesOf } from './phase-times.ts';
import { formatDuration, formatNumber, renderTable, type Cell } from './table.ts';

const mostColumns = 100;

/** Left out in this order when there is no room; `slipway trials show` has them all. */
const dispensable = ['image', 'boot', 'setup', 'verifier'];

const shortestTask = 12;

interface Column {
  readonly heading: string;
  readonly cells: readonly Cell[];
}

export function trialTable(trials: readonly TrialSummary[]): string {
  const task = taskColumn(trials);
  let columns = [task, ...verdictColumns(trials), ...usageColumns(trials), ...timeColumns(trials)];
  for (const name of dispensable) {
    if (excessOf(columns) <= 0) break;
    columns = columns.filter(({ heading }) => heading !== name);
  }
  const excess = excessOf(columns);
  if (excess > 0) columns[0] = cut(task, excess);
  return render(columns);
}

/** The organisation that all tasks share stands in the heading. */
function taskColumn(trials: readonly TrialSummary[]): Column {
  const names = trials.map(({ taskName }) => taskName);
  const organisation = names[0]?.split('/')[0] ?? '';
  const isShared = names.length > 1 && names.every((name) => name.startsWith(`${organisation}/`));
  if (!isShared) return { heading: 'task', cells: names };
  const cells = names.map((name) => name.slice(organisation.length + 1));
  return { heading: `task of ${organisation}`, cells };
}

function verdictColumns(trials: readonly TrialSummary[]): Column[] {
  return [
    {
      heading: 'trial',
      cells: trials.map(({ trialName }) => trialName.split('__').at(-1) ?? trialName),
    },
    { heading: 'reward', cells: trials.map(rewardText) },
    {
      heading: 'result',
      cells: trials.map(({ failure }) =>
        failure === null ? 'ok' : (failure.code ?? failure.exceptionType),
      ),
    },
  ];
}

/** Only where an agent said something. */
function usageColumns(trials: readonly TrialSummary[]): Column[] {
  const columns = [
    { heading: 'turns', cells: trials.map(({ turns }) => turns) },
    { heading: 'tokens in', cells: trials.map(({ tokens }) => tokens.input) },
    { heading: 'out', cells: trials.map(({ tokens }) => tokens.output) },
  ];
  return columns.filter(({ cells }) => cells.some((cell) => cell !== null));
}

function timeColumns(trials: readonly TrialSummary[]): Column[] {
  const rows = trials.map(({ phaseTimes }) => phaseTimesOf(phaseTimes));
  return phaseColumns.map((heading, at) => ({
    heading,
    cells: rows.map((row) => {
      const ms = row[at] ?? null;
      return ms === null ? '–' : formatDuration(ms);
    }),
  }));
}

/** Of several channels the one called `reward`, or else the first, and how many more there are. */
function rewardText({ rewards }: TrialSummary): string {
  const channels = Object.entries(rewards ?? {});
  const [, value] = channels.find(([channel]) => channel === 'reward') ?? channels[0] ?? [];
  if (value === undefined) return '–';
  return `${formatNumber(value)}${channels.length === 1 ? '' : ` (+${channels.length - 1})`}`;
}

function render(columns: readonly Column[]): string {
  const [first] = columns;
  const rows = (first?.cells ?? []).map((_, row) => columns.map(({ cells }) => cells[row] ?? null));
  return renderTable(
    columns.map(({ heading }) => heading),
    rows,
  );
}

function excessOf(columns: readonly Column[]): number {
  return (render(columns).split('\n')[1] ?? '').length - mostColumns;
}

function cut({ heading, cells }: Column, excess: number): Column {
  const widest = Math.max(...[heading, ...cells].map((cell) => String(cell).length));
  const width = Math.max(widest - excess, shortestTask);
  const shorter = (text: string): string =>
    text.length <= width ? text : `${text.slice(0, width - 1)}…`;
  return { heading: shorter(heading), cells: cells.map((cell) => shorter(String(cell))) };
}
