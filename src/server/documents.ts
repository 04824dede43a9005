/** From what the program knows to the documents of the API: dates as text, no addresses of callbacks, no keys, no request. */
import type { Delivery, StoredEvent } from '../store/rollout-store.ts';
import type { AdmissionView, Caller, RolloutView } from '../scheduler/rollout-service.ts';
import type { AdmissionDocument } from '../wire/api/admission.ts';
import type { CallbackDocument } from '../wire/api/callback.ts';
import type { DiagnosisDocument } from '../wire/api/diagnosis.ts';
import type { EventDocument } from '../wire/api/event.ts';
import type { ReceiptDocument } from '../wire/api/receipt.ts';
import type { RolloutDetailDocument, RolloutDocument } from '../wire/api/rollout.ts';
import type { Diagnosis } from '../wire/rollout/diagnosis.ts';
import { samplesDocumentOf } from '../wire/rollout/rollout-samples.ts';
import type { CancelReceipt } from '../wire/rollout/receipt.ts';
import type { RolloutOutcome } from '../wire/rollout/rollout-outcome.ts';
import type { RouteActivity } from '../wire/rollout/route-activity.ts';

const text = (date: Date): string => date.toISOString();
const textOrNull = (date: Date | null): string | null => date?.toISOString() ?? null;

export function rolloutDocumentOf({ rollout, progress, calls }: RolloutView): RolloutDocument {
  const waitingOn = progress?.waitingOn ?? null;
  return {
    id: rollout.id,
    tenant: rollout.tenant,
    state: rollout.state,
    stage: progress?.stage ?? null,
    waiting_on:
      waitingOn === null
        ? null
        : {
            kind: waitingOn.kind,
            owner: waitingOn.owner,
            detail: waitingOn.detail,
            since: text(waitingOn.since),
            deadline: textOrNull(waitingOn.deadline),
          },
    last_progress_at: textOrNull(progress?.lastProgressAt ?? null),
    attempt: rollout.attempt,
    has_agent_begun: rollout.hasAgentBegun,
    accepted_at: text(rollout.acceptedAt),
    started_at: textOrNull(rollout.startedAt),
    completed_at: textOrNull(rollout.completedAt),
    ended_at: textOrNull(rollout.endedAt),
    outcome: rollout.outcome === null ? null : outcomeOf(rollout.outcome),
    calls: calls === null ? null : callsOf(calls),
    is_tombstone: rollout.isTombstone,
  };
}

export function rolloutDetailOf(view: RolloutView): RolloutDetailDocument {
  return {
    ...rolloutDocumentOf(view),
    callbacks: view.deliveries.map(callbackDocumentOf),
    receipts: view.receipts.map(receiptDocumentOf),
  };
}

function outcomeOf(outcome: RolloutOutcome): NonNullable<RolloutDocument['outcome']> {
  return {
    status: outcome.status,
    reward: outcome.reward,
    err_message: outcome.errMessage,
    err_category: outcome.errCategory,
    stage: outcome.stage,
    cause: outcome.cause,
    trainable: outcome.trainable,
    retryable: outcome.retryable,
    verdict: outcome.verdict === null ? null : { rewards: { ...outcome.verdict.rewards } },
    samples: outcome.samples === undefined ? null : samplesDocumentOf(outcome.samples),
  };
}

function callsOf(calls: RouteActivity): NonNullable<RolloutDocument['calls']> {
  const { waiting, refusal, spent, capture } = calls;
  return {
    running: calls.callsRunning,
    done: calls.callsDone,
    waiting:
      waiting === null
        ? null
        : {
            since: text(waiting.since),
            bytes: waiting.bytes,
            last_byte_at: textOrNull(waiting.lastByteAt),
          },
    last_call_ended_at: textOrNull(calls.lastCallEndedAt),
    refusal:
      refusal === null
        ? null
        : {
            status: refusal.status,
            message: refusal.message,
            at: text(refusal.at),
            count: refusal.count,
          },
    spent: spent === null ? null : { ...spent, at: text(spent.at) },
    capture: capture === null ? null : { ...capture },
  };
}

export function callbackDocumentOf(delivery: Delivery): CallbackDocument {
  return {
    key: delivery.key,
    seq: delivery.seq,
    rollout_id: delivery.rolloutId,
    channel: delivery.channel,
    receiver: originOf(delivery.url),
    state: delivery.state,
    attempts: delivery.attempts,
    size_bytes: Buffer.byteLength(delivery.body),
    created_at: text(delivery.createdAt),
    last_attempt_at: textOrNull(delivery.lastAttemptAt),
    last_error: delivery.lastError,
  };
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : '(not an address)';
}

export function receiptDocumentOf(receipt: CancelReceipt): ReceiptDocument {
  return {
    rollout_id: receipt.rolloutId,
    disposition: receipt.disposition,
    stage: receipt.stage,
    model_calls_ended: receipt.modelCallsEnded,
    processes_killed: receipt.processesKilled,
    confirmed_gone: [...receipt.confirmedGone],
    is_complete: receipt.isComplete,
    problem: receipt.problem,
    duration_ms: receipt.durationMs,
    at: text(receipt.at),
  };
}

export function eventDocumentOf(event: StoredEvent): EventDocument {
  return {
    cursor: event.cursor,
    rollout_id: event.rolloutId,
    tenant: event.tenant,
    type: event.type,
    at: text(event.at),
    payload: { ...event.payload },
  };
}

export function admissionDocumentOf(view: AdmissionView, caller: Caller): AdmissionDocument {
  const { paused } = view;
  return {
    capacity: view.capacity,
    running_cap: view.runningCap,
    running: view.running,
    queued: view.queued,
    delivering: view.delivering,
    paused:
      paused === null
        ? null
        : { reason: paused.reason, since: text(paused.since), retry_at: text(paused.retryAt) },
    is_stopping: view.isStopping,
    tenants: view.tenants
      .filter(({ name }) => caller.tenant === null || name === caller.tenant)
      .map(({ name, weight, running, queued }) => ({ name, weight, running, queued })),
  };
}

export function diagnosisDocumentOf(diagnosis: Diagnosis): DiagnosisDocument {
  return {
    rollout_id: diagnosis.rolloutId,
    kind: diagnosis.kind,
    owner: diagnosis.owner,
    waiting_on: diagnosis.waitingOn,
    since: textOrNull(diagnosis.since),
    deadline: textOrNull(diagnosis.deadline),
    evidence: [...diagnosis.evidence],
    remedy: diagnosis.remedy,
  };
}
