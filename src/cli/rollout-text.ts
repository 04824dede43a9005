import type { FileDocument } from '../wire/api/file.ts';
import type { DiagnosisDocument } from '../wire/api/diagnosis.ts';
import type { ReceiptDocument } from '../wire/api/receipt.ts';
import type { RolloutDetailDocument, RolloutDocument } from '../wire/api/rollout.ts';
import { plainText } from './plain-text.ts';
import { ago, waitText } from './status-text.ts';
import { counted, formatDuration, renderTable } from './table.ts';

export function rolloutsText(rollouts: readonly RolloutDocument[]): string {
  if (rollouts.length === 0) return 'no rollouts';
  return renderTable(
    ['rollout', 'tenant', 'state', 'reward', 'cause', 'accepted', 'took'],
    rollouts.map(({ id, tenant, state, outcome, accepted_at, ended_at }) => [
      ...[id, tenant, state, outcome?.reward ?? null, outcome?.cause ?? null, accepted_at],
      ended_at === null ? null : formatDuration(Date.parse(ended_at) - Date.parse(accepted_at)),
    ]),
  );
}

function samplesText(
  samples: NonNullable<NonNullable<RolloutDetailDocument['outcome']>['samples']>,
) {
  const { count, trained_tokens: trained, labels, not_trainable: none } = samples;
  if (none !== null) return `none: ${none.reason}: ${none.message}`;
  const each = Object.entries(labels).map(([label, times]) => `${label} ${times}`);
  return `${count} with ${trained} trained tokens: ${each.join(', ')}`;
}

/** One rollout with what became of it and what is kept. */
export function rolloutText(
  rollout: RolloutDetailDocument,
  files: readonly FileDocument[],
  now: Date,
): string {
  const { outcome, waiting_on: wait } = rollout;
  const lines: [string, string][] = [
    ['rollout', rollout.id],
    ['tenant', rollout.tenant],
    ['state', rollout.stage === null ? rollout.state : `${rollout.state}, ${rollout.stage}`],
    ['accepted', rollout.accepted_at],
    ['started', rollout.started_at ?? '–'],
    ['ended', rollout.ended_at ?? '–'],
    ['attempt', String(rollout.attempt)],
  ];
  if (wait !== null) lines.push(['waiting on', `${waitText(wait)}, for ${ago(wait.since, now)}`]);
  if (outcome !== null) {
    const { reward, verdict, err_message: message, err_category: category } = outcome;
    lines.push(
      ['reward', reward === null ? '–' : String(reward)],
      ['ended in', outcome.cause === null ? outcome.stage : `${outcome.stage}: ${outcome.cause}`],
      ['trainable', outcome.trainable ? 'yes' : 'no'],
      ['retryable', outcome.retryable ? 'yes' : 'no'],
    );
    if (message !== null) lines.push(['message', `${message} (${category ?? 'no category'})`]);
    if (verdict !== null) lines.push(['verdict', JSON.stringify(verdict.rewards)]);
    if (outcome.samples !== null) lines.push(['samples', samplesText(outcome.samples)]);
  }
  const width = Math.max(...lines.map(([name]) => name.length));
  const parts = lines.map(([name, value]) => `${name.padEnd(width)}  ${plainText(value)}`);
  if (rollout.callbacks.length > 0)
    parts.push(
      '',
      renderTable(
        ['callback', 'state', 'attempts', 'receiver', 'error'],
        rollout.callbacks.map(({ channel, state, attempts, receiver, last_error }) => [
          ...[channel, state, attempts, receiver, last_error],
        ]),
      ),
    );
  if (files.length > 0)
    parts.push(
      '',
      renderTable(
        ['file', 'bytes'],
        files.map(({ path, size_bytes }) => [path, size_bytes]),
      ),
    );
  return parts.join('\n');
}

export function receiptsText(receipts: readonly ReceiptDocument[]): string {
  if (receipts.length === 0) return 'nothing to cancel';
  return renderTable(
    ['rollout', 'was', 'stage', 'calls ended', 'killed', 'confirmed gone', 'took', ''],
    receipts.map((receipt) => [
      ...[receipt.rollout_id, receipt.disposition, receipt.stage],
      ...[receipt.model_calls_ended, receipt.processes_killed],
      receipt.confirmed_gone.length === 0 ? null : receipt.confirmed_gone.join(', '),
      formatDuration(receipt.duration_ms),
      receipt.is_complete ? '' : `not complete: ${receipt.problem ?? 'unknown'}`,
    ]),
  );
}

/** Each finding as a short paragraph: what, who, since, how that is known, what to do. */
export function findingsText(findings: readonly DiagnosisDocument[], now: Date): string {
  if (findings.length === 0) return 'nothing is stuck';
  return findings.map((finding) => findingText(finding, now)).join('\n\n');
}

function findingText(finding: DiagnosisDocument, now: Date): string {
  const { rollout_id: id, kind, owner, waiting_on, since, deadline, evidence, remedy } = finding;
  const lines = [
    `${id ?? 'the server'}: ${kind}`,
    ...(waiting_on === null ? [] : [`  waiting on: ${waiting_on}`]),
    ...(owner === null ? [] : [`  owner: ${owner}`]),
    ...(since === null ? [] : [`  since: ${since} (${ago(since, now)})`]),
    ...(deadline === null ? [] : [`  ends by itself: ${deadline}`]),
    ...evidence.map((what) => `  seen: ${what}`),
    ...(remedy === null ? [] : [`  remedy: ${remedy}`]),
  ];
  return lines.map(plainText).join('\n');
}

export function downloadedText(count: number, bytes: number, dir: string): string {
  return `${counted(count, 'file')}, ${bytes} bytes, in ${dir}`;
}
