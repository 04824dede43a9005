import type { AdmissionDocument } from '../wire/api/admission.ts';
import type { RolloutDocument } from '../wire/api/rollout.ts';
import { counted, formatDuration, renderTable } from './table.ts';

/** The server at a glance: admission, tenants, live rollouts. */
export function statusText(
  admission: AdmissionDocument,
  rollouts: readonly RolloutDocument[],
  now: Date,
): string {
  const { capacity, tenants } = admission;
  const parts = [
    `${admission.running} of ${capacity.max_concurrent} running, ${admission.queued} queued, ${admission.delivering} delivering; ` +
      `${counted(capacity.available, 'place')} free of ${capacity.max_concurrent + capacity.max_queue_depth}.`,
    ...notes(admission),
  ];
  if (tenants.length > 0)
    parts.push(
      '',
      renderTable(
        ['tenant', 'weight', 'running', 'queued'],
        tenants.map(({ name, weight, running, queued }) => [name, weight, running, queued]),
      ),
    );
  if (rollouts.length > 0)
    parts.push(
      '',
      renderTable(
        ['rollout', 'tenant', 'state', 'stage', 'waiting on', 'for'],
        rollouts.map(({ id, tenant, state, stage, waiting_on: wait, accepted_at }) => [
          ...[id, tenant, state, stage ?? '–', wait === null ? '–' : waitText(wait)],
          ago(wait?.since ?? accepted_at, now),
        ]),
      ),
    );
  return parts.join('\n');
}

function notes({ capacity, running_cap, paused, is_stopping }: AdmissionDocument): string[] {
  return [
    ...(running_cap < capacity.max_concurrent
      ? [`The engine's KV cache is full: no more than ${running_cap} run now.`]
      : []),
    ...(paused === null ? [] : [`Admission is paused: ${paused.reason}`]),
    ...(is_stopping ? ['The server is shutting down.'] : []),
  ];
}

/** `engine (owner engine): the first token`. */
export function waitText(wait: NonNullable<RolloutDocument['waiting_on']>): string {
  const detail = wait.detail === null ? '' : `: ${wait.detail}`;
  return `${wait.kind} (${wait.owner})${detail}`;
}

export function ago(instant: string, now: Date): string {
  return formatDuration(Math.max(0, now.getTime() - Date.parse(instant)));
}
