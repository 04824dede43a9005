/** The callbacks of a rollout as deliveries: pure. Completion goes before grader; a channel whose body is fixed gets no second one. */
import { createHash } from 'node:crypto';
import type { ExecutionResult } from '../backends/execution-backend.ts';
import { errorRegistry } from '../core/error-registry.ts';
import type { NewDelivery } from '../store/rollout-store.ts';
import { completionBody, graderBody, type CallbackBody } from '../wire/rollout/callback-body.ts';
import type { CallbackChannel, CallbackReport } from '../wire/rollout/callback-payloads.ts';
import { samplesDocumentOf } from '../wire/rollout/rollout-samples.ts';
import type { RolloutRequest } from '../wire/rollout/rollout-request.ts';
import type { RolloutOutcome } from '../wire/rollout/rollout-outcome.ts';
import type { OwnFailure } from './outcomes.ts';

export interface Addressee {
  readonly id: string;
  /** Tells a rollout from one of the same id that retention has forgotten. */
  readonly acceptedAt: Date;
  readonly request: Pick<
    RolloutRequest,
    'completion_callback_url' | 'grader_callback_url' | 'controller_api_key'
  >;
}

export interface MadeDelivery {
  readonly delivery: NewDelivery;
  /** What of the report could not be sent, for the log. */
  readonly losses: readonly string[];
}

/** The agent's outcome is known, the grade is not. None where nobody is to be called. */
export function completionDeliveries(
  to: Addressee,
  result: ExecutionResult,
): readonly MadeDelivery[] {
  const { completion_callback_url: url } = to.request;
  if (url === '') return [];
  return [made(to, { channel: 'completion', url, body: completionBody(reportOf(to, result)) })];
}

/** The final result is known. */
export function endDeliveries(
  to: Addressee,
  end: { readonly result: ExecutionResult; readonly hasCompleted: boolean },
): readonly MadeDelivery[] {
  return terminalDeliveries(to, reportOf(to, end.result), end.hasCompleted);
}

/** It ended without a result. `diagnostics`: what its backend said before, if anything. */
export function failureDeliveries(
  to: Addressee,
  end: {
    readonly failure: OwnFailure;
    readonly diagnostics: Readonly<Record<string, unknown>> | null;
    readonly hasCompleted: boolean;
  },
): readonly MadeDelivery[] {
  const { errMessage, errCategory } = end.failure;
  const report: CallbackReport = {
    ...{ status: 'failure', rolloutId: to.id, diagnostics: end.diagnostics },
    ...{ errMessage, errCategory, sample: null },
  };
  return terminalDeliveries(to, report, end.hasCompleted);
}

/** What an end says that its backend did not bring about, in the shape of the protocol. `backend`: as `/health` names it. */
export function ownDiagnostics(
  { cause, stage, errCategory, trainable, retryable, verdict, samples }: RolloutOutcome,
  backend: string,
): Readonly<Record<string, unknown>> | null {
  if (cause === null || cause === 'INTERNAL') return null;
  const isFromOutside = cause === 'CANCELLED' || cause === 'SERVER_STOPPING';
  return {
    backend,
    phase: isFromOutside ? 'cancelled' : (phases[stage] ?? 'setup'),
    harbor_exception_type: errorRegistry[cause].harborType,
    category: errCategory,
    timings_sec: {},
    outcome: { stage, cause, trainable, retryable, verdict },
    ...(samples !== undefined && { samples: samplesDocumentOf(samples) }),
  };
}

/** What is not among them had not begun. */
const phases: Partial<Readonly<Record<RolloutOutcome['stage'], string>>> = {
  environment: 'environment_setup',
  'agent-setup': 'agent_setup',
  agent: 'agent',
  verifier: 'verification',
};

function terminalDeliveries(
  to: Addressee,
  report: CallbackReport,
  hasCompleted: boolean,
): readonly MadeDelivery[] {
  const { completion_callback_url: url, grader_callback_url: graderUrl } = to.request;
  const deliveries: MadeDelivery[] = [];
  if (!hasCompleted && url !== '')
    deliveries.push(made(to, { channel: 'completion', url, body: completionBody(report) }));
  if (graderUrl !== null && graderUrl !== '')
    deliveries.push(made(to, { channel: 'grader', url: graderUrl, body: graderBody(report) }));
  return deliveries;
}

function reportOf({ id }: Addressee, result: ExecutionResult): CallbackReport {
  const { status, diagnostics, errMessage, errCategory, sample } = result;
  return { status, rolloutId: id, diagnostics, errMessage, errCategory, sample };
}

/** The same rollout and channel always have the same key, also after a restart. */
function keyOf({ id, acceptedAt }: Addressee, channel: CallbackChannel): string {
  const name = `${id}\n${acceptedAt.toISOString()}\n${channel}`;
  return `${channel}-${createHash('sha256').update(name).digest('hex').slice(0, 40)}`;
}

function made(
  to: Addressee,
  what: { readonly channel: CallbackChannel; readonly url: string; readonly body: CallbackBody },
): MadeDelivery {
  const { channel, url, body } = what;
  const key = to.request.controller_api_key ?? '';
  return {
    delivery: {
      key: keyOf(to, channel),
      rolloutId: to.id,
      ...{ channel, url },
      authorization: key === '' ? null : `Bearer ${key}`,
      body: body.text,
    },
    losses: body.losses,
  };
}
