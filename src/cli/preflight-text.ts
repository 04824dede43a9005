import type { PreflightReport, PreflightResult } from '../wire/preflight-report.ts';
import { plainText } from './plain-text.ts';
import { counted, formatDuration } from './table.ts';

/** One line for a check, and below it what to do about it. */
export function resultText(result: PreflightResult): string {
  const { name, subject, status, summary, code, field, remedy, detail } = result;
  const of = subject === null ? '' : ` ${subject}`;
  const at = [code, field].filter((part) => part !== null).join(' ');
  const tag = at === '' ? '' : ` [${at}]`;
  const time = formatDuration(result.duration_ms);
  const head = `${status.padEnd(7)} ${name}${of}: ${summary}${tag} (${time})`;
  const lines = [
    ...(remedy === null ? [] : [`→ ${remedy}`]),
    // As in every other error: a remedy may speak of the lines below it.
    ...(detail === null ? [] : detail.trimEnd().split('\n')),
  ];
  return [head, ...lines.map((line) => `        ${line}`)].map(plainText).join('\n');
}

export function reportText({ ok, counts, duration_ms: durationMs }: PreflightReport): string {
  const found = [
    `${counts.ok} ok`,
    counted(counts.warning, 'warning'),
    `${counts.failed} failed`,
    `${counts.skipped} skipped`,
  ].join(', ');
  return `${ok ? 'nothing stands in the way' : 'not ready'}: ${found} in ${formatDuration(durationMs)}`;
}
