/** Rollouts in: reserve, make durable, queue. Nothing is awaited between the check of a limit and the count that it checks. */
import { createHash, randomBytes } from 'node:crypto';
import { canonicalJson } from '../core/canonical-json.ts';
import { isRolloutError, messageOf, type ErrorCode } from '../core/errors.ts';
import type { StoredRollout } from '../store/rollout-store.ts';
import { repeatKind } from '../store/rollout-records.ts';
import { trainsNothing, wantsSamples } from '../wire/rollout/train-rules.ts';
import type { Reservation } from './admission.ts';
import { LiveRollout } from './live-rollout.ts';
import { failureOf } from './outcomes.ts';
import { endAsFailure, seeThrough } from './own-ends.ts';
import type { RolloutService, SubmitAnswer } from './rollout-service.ts';
import type { SchedulerCore } from './scheduler-core.ts';
import { maySee } from './tenants.ts';
import { waitS } from './return-times.ts';

type Submitted = Parameters<RolloutService['submit']>[0];
type Refusal = Extract<SubmitAnswer, { kind: 'refused' | 'stopping' }>;

/** A restart takes about this long. */
const restartS = 5;
const diskFullS = 10;

const refusalCodes: Readonly<Record<'full' | 'paused' | 'stopping' | 'disk-full', ErrorCode>> = {
  'disk-full': 'DISK_FULL',
  full: 'QUEUE_FULL',
  paused: 'ADMISSION_PAUSED',
  stopping: 'SERVER_STOPPING',
};

export async function submitRollout(
  submitted: Submitted,
  core: SchedulerCore,
): Promise<SubmitAnswer> {
  const id = submitted.request.rollout_id ?? randomBytes(16).toString('hex');
  const tenant = core.tenants.of(id, submitted.caller);
  const refusal = refusalOf(tenant, core);
  const reservation = refusal === null ? core.admission.tryReserve(tenant) : null;
  // A repeated id gets its answer also where nothing new gets in.
  if (reservation === null)
    return (await repeatAnswer(submitted, core)) ?? refusal ?? full(tenant, core);
  const accepted = accept(submitted, { id, tenant, reservation, core });
  core.accepting.set(id, accepted);
  try {
    return await accepted;
  } catch (error) {
    reservation.giveBack();
    if (!isRolloutError(error, 'DISK_FULL')) throw error;
    core.parts.logger.log('error', 'a rollout was refused: there is no space to keep it', {
      tenant,
    });
    return refused('disk-full', 'there is no space left on the disk of the server', diskFullS);
  } finally {
    if (core.accepting.get(id) === accepted) core.accepting.delete(id);
  }
}

async function accept(
  { request, canonicalBody, caller }: Submitted,
  {
    id,
    tenant,
    reservation,
    core,
  }: {
    readonly id: string;
    readonly tenant: string;
    readonly reservation: Reservation;
    readonly core: SchedulerCore;
  },
): Promise<SubmitAnswer> {
  const { clock, store } = core.parts;
  const acceptedAt = clock.now();
  const acceptedMs = clock.monotonicMs();
  const body =
    request.rollout_id === null
      ? canonicalJson({ ...(JSON.parse(canonicalBody) as object), rollout_id: id })
      : canonicalBody;
  const digest = digestOf(canonicalBody);
  const answer = await store.accept({ id, tenant, request: body, digest, acceptedAt });
  if (answer.kind !== 'accepted') {
    reservation.giveBack();
    return answerToRepeat(answer.rollout, { digest, caller });
  }
  const waitMs = waitLimitMs(request.agent_timeout_sec, core);
  const rollout = new LiveRollout({
    ...{ id, tenant, acceptedAt, acceptedMs, waitMs, reservation },
    ...{ state: 'queued', attempt: 0 },
    wantsSamples: wantsSamples(request.metadata, core.options.train ?? trainsNothing),
  });
  core.live.set(id, rollout);
  core.ledger.tell(rollout, { type: 'queued' });
  // It is durable: whatever happens to it now is its own end, and its reservation is its own.
  await enqueue(rollout, core).catch((error: unknown) => endUnqueued(rollout, error, core));
  return { kind: 'accepted', id, isRepeat: false };
}

function endUnqueued(rollout: LiveRollout, error: unknown, core: SchedulerCore): void {
  core.parts.logger.log('error', 'an accepted rollout could not be queued', {
    rolloutId: rollout.id,
    error: messageOf(error),
  });
  if (!rollout.claim('deadline')) return;
  const failure = failureOf(error, 'queue');
  const work = endAsFailure(rollout, { by: 'deadline', failure }, core);
  rollout.ending = work;
  core.background(seeThrough(rollout, work, core));
}

/** It is durable and known as live. */
export async function enqueue(rollout: LiveRollout, core: SchedulerCore): Promise<void> {
  const { id, tenant } = rollout;
  core.waitLimits.set(id, rollout.acceptedMs + rollout.waitMs);
  await core.queue.put({ id, tenant });
  core.dispatcher.wake();
}

/** The controller's limit for the agent bounds the wait too. One that is over from the start is the backend's to say. */
export function waitLimitMs(agentTimeoutS: number | null, core: SchedulerCore): number {
  const { queueTimeoutMs } = core.options.limits;
  return agentTimeoutS === null || agentTimeoutS <= 0
    ? queueTimeoutMs
    : Math.min(queueTimeoutMs, agentTimeoutS * 1000);
}

async function repeatAnswer(
  { request, canonicalBody, caller }: Submitted,
  core: SchedulerCore,
): Promise<SubmitAnswer | null> {
  const { rollout_id: id } = request;
  if (id === null) return null;
  const { store } = core.parts;
  // What is being accepted at this moment is known once that is over; its error is told to who sent it.
  await core.accepting.get(id)?.catch(() => null);
  const known = store.knows(id) ? await store.rollout(id) : null;
  return known === null ? null : answerToRepeat(known, { digest: digestOf(canonicalBody), caller });
}

function answerToRepeat(
  known: StoredRollout,
  { digest, caller }: { readonly digest: string; readonly caller: Submitted['caller'] },
): SubmitAnswer {
  const { id, tenant } = known;
  if (!maySee(caller, tenant)) return { kind: 'conflict', id };
  switch (repeatKind(known, digest)) {
    case 'same':
      return { kind: 'accepted', id, isRepeat: true };
    case 'different':
      return { kind: 'conflict', id };
    case 'tombstone':
      return { kind: 'tombstone', id };
  }
}

/** Why nobody gets in now; null = it depends on the places. */
function refusalOf(tenant: string, core: SchedulerCore): Refusal | null {
  const { pause, queue } = core;
  if (core.stopping.aborted) {
    note('stopping', tenant, core);
    return { kind: 'stopping', retryAfterS: restartS };
  }
  if (core.parts.hasRoom?.() === false) {
    note('disk-full', tenant, core);
    return refused('disk-full', 'the disk of the server is nearly full', diskFullS);
  }
  if (pause.mayAdmit(queue.counts().queued)) return null;
  note('paused', tenant, core);
  const retryAfterS = pause.leftMs === 0 ? restartS : waitS(pause.leftMs / 1000);
  return refused('paused', `admission is paused: ${pause.view?.reason ?? ''}`, retryAfterS);
}

function full(tenant: string, core: SchedulerCore): Refusal {
  note('full', tenant, core);
  return refused('full', 'rollout queue is full; retry later', core.admission.sendAway(tenant));
}

function refused(
  reason: Extract<Refusal, { kind: 'refused' }>['reason'],
  detail: string,
  retryAfterS: number,
): Refusal {
  return { kind: 'refused', reason, detail, retryAfterS };
}

function note(reason: keyof typeof refusalCodes, tenant: string, core: SchedulerCore): void {
  core.parts.logger.log('debug', 'a rollout was refused', { tenant, code: refusalCodes[reason] });
}

function digestOf(canonicalBody: string): string {
  return createHash('sha256').update(canonicalBody).digest('hex');
}
