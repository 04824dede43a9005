/** One report of all benches: every goal with what was measured. A bench without a report, or with a part of one, is a miss. */
import type { Goal } from '../report.ts';
import type { BenchRun } from './run-bench.ts';

export interface OneReport {
  readonly isMet: boolean;
  readonly json: string;
  readonly markdown: string;
}

export function oneReport(
  runs: readonly BenchRun[],
  machine: { readonly cores: number; readonly node: string; readonly at: string },
): OneReport {
  const isMet = runs.every(
    ({ document, problem }) =>
      problem === null && document?.goals.every((goal) => goal.isMet) === true,
  );
  const document = { size: 'short', isMet, ...machine, benches: runs };
  return { isMet, json: `${JSON.stringify(document, null, 2)}\n`, markdown: text(runs, machine) };
}

function text(
  runs: readonly BenchRun[],
  { cores, node, at }: Parameters<typeof oneReport>[1],
): string {
  const goals = runs.flatMap(({ document }) => document?.goals ?? []);
  const silent = runs.filter(({ document }) => document === null);
  const partial = runs.filter(({ document }) => document?.isPartial === true);
  const missed = goals.filter((goal) => !goal.isMet);
  const lines = [
    '# Benches at short size',
    '',
    `${at}, ${cores} cores, Node ${node}. Short sizes scatter; \`npm run bench -- NAME\` measures at full size.`,
    `${goals.length} goals: ${goals.length - missed.length} met, ${missed.length} missed; ${silent.length} of ${runs.length} benches came to no report, ${partial.length} to a part of one.`,
    '',
    '| bench | goal | limit | measured | |',
    '| --- | --- | --- | --- | --- |',
  ];
  for (const { bench, document, problem } of runs) {
    if (problem !== null)
      lines.push(
        `| ${bench} | ${document === null ? 'its report' : 'the whole of its report'} | | ${cell(problem)} | MISSED |`,
      );
    for (const goal of document?.goals ?? []) lines.push(row(bench, goal, goal.isMet));
  }
  lines.push('', '## Figures', '', '| bench | figure | value |', '| --- | --- | --- |');
  for (const { bench, document } of runs)
    for (const { name, value, unit } of document?.figures ?? [])
      lines.push(`| ${bench} | ${cell(name)} | ${number(value)} ${unit} |`);
  lines.push('', '## Time', '', '| bench | seconds |', '| --- | --- |');
  for (const { bench, seconds } of runs) lines.push(`| ${bench} | ${seconds.toFixed(0)} |`);
  return `${lines.join('\n')}\n`;
}

function row(bench: string, goal: Goal, isMet: boolean): string {
  const { name, direction, limit, measured, unit } = goal;
  const verdict = isMet ? 'met' : 'MISSED';
  return `| ${bench} | ${cell(name)} | ${direction} ${number(limit)} ${unit} | ${number(measured)} ${unit} | ${verdict} |`;
}

function cell(words: string): string {
  return words.replaceAll('|', '\\|').replaceAll('\n', ' ');
}

/** JSON has no number for what could not be measured. */
function number(value: number | null): string {
  if (value === null) return 'nothing';
  return Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(2);
}
