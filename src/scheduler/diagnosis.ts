/**
 * Why a rollout is not moving: from what is known about it, and about the server, to one answer. Pure: whoever asks brings the facts. Doctor, API and
 * metrics say the same because they all ask here. A wait that is too young to speak of is told too, as `moving`.
 */
import type { DeliveryActivity } from '../callbacks/callback-delivery.ts';
import type { ExecutionProbe } from '../backends/execution-backend.ts';
import type { UpstreamProbe } from '../gateway/gateway-control.ts';
import type { Diagnosis, HangKind } from '../wire/rollout/diagnosis.ts';
import type { WaitingOn } from '../wire/rollout/progress.ts';
import { agentFinding } from './diagnosis/agent-finding.ts';
import { deliveryFinding } from './diagnosis/delivery-finding.ts';
import { diskFinding } from './diagnosis/disk-finding.ts';
import {
  after,
  diagnosisOf,
  durationText,
  moving,
  msSince,
  ordinaryWaitMs,
  type Finding,
} from './diagnosis/finding.ts';
import { processFinding } from './diagnosis/process-finding.ts';
import { pauseFinding, placesText, queueFinding } from './diagnosis/queue-finding.ts';
import type { AdmissionView, RolloutView } from './rollout-service.ts';

export interface DiskFacts {
  /** Of the data folder. */
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** Below this the server accepts no more. */
  readonly floorBytes: number;
}

export interface ServerFacts {
  readonly admission: AdmissionView;
  /** null = it could not be looked at. */
  readonly disk: DiskFacts | null;
  readonly now: Date;
}

export interface RolloutFacts extends ServerFacts {
  readonly view: RolloutView;
  /** What its callbacks do now; null = none is under way. */
  readonly delivery: DeliveryActivity | null;
  /** null = the backend has nothing to look at, or the rollout does not execute. */
  readonly probe: ExecutionProbe | null;
  /** Whether the engine answers anything; null = it was not asked. */
  readonly upstream: UpstreamProbe | null;
}

/** Stages that nobody can look into are left in peace for this long. */
const quietStageMs = 30_000;
/** A verifier that works is hung all the same when so much of its time is over. */
const busyVerifierMs = 60_000;

/** Of one rollout. */
export function diagnoseRollout(facts: RolloutFacts): Diagnosis {
  const { id } = facts.view.rollout;
  const finding = findingOf(facts);
  if (finding !== null) return diagnosisOf(id, finding);
  const nothing = { owner: null, waitingOn: null, since: null, deadline: null, remedy: null };
  return { rolloutId: id, kind: 'ended', ...nothing, evidence: [] };
}

/** Of the server as a whole: what holds up every rollout, also those that are refused and so have no view. Empty = nothing. */
export function diagnoseServer(facts: ServerFacts): readonly Diagnosis[] {
  return [diskFinding(facts, null), pauseFinding(facts), fullFinding(facts)]
    .filter((finding) => finding !== null)
    .map((finding) => diagnosisOf(null, finding));
}

function fullFinding({ admission, now }: ServerFacts): Finding | null {
  const { capacity, paused, isStopping } = admission;
  if (capacity.available > 0 || paused !== null || isStopping) return null;
  return {
    kind: 'admission-starved',
    owner: 'scheduler',
    waitingOn: 'a place for another rollout: all that come are refused',
    since: now,
    evidence: [
      `${capacity.in_flight} of ${capacity.max_concurrent + capacity.max_queue_depth} reservations are held`,
      ...placesText(admission),
    ],
    remedy: 'See what the running rollouts wait for, or raise admission.max_concurrent.',
  };
}

/** null = it has ended, and nothing is left to do for it. */
function findingOf(facts: RolloutFacts): Finding | null {
  const { rollout, progress } = facts.view;
  switch (rollout.state) {
    case 'success':
    case 'failure':
    case 'cancelled':
      return deliveryFinding(facts);
    case 'queued':
      return progress?.waitingOn?.kind === 'disk'
        ? diskFinding(facts, progress.waitingOn.since)
        : queueFinding(facts);
    case 'running':
    case 'grading':
      return progress === null ? noProgress(facts) : waitFinding(facts);
  }
}

function waitFinding(facts: RolloutFacts): Finding {
  const { progress } = facts.view;
  const wait = progress?.waitingOn ?? null;
  if (wait === null) return noProgress(facts);
  switch (wait.kind) {
    case 'disk':
      return diskFinding(facts, wait.since) ?? noProgress(facts);
    case 'admission':
    case 'paused':
      return queueFinding(facts);
    case 'callback':
      return deliveryFinding(facts) ?? stage(facts, wait);
    case 'image-build':
      return still('build-stuck', facts, wait);
    case 'sandbox-create':
    case 'healthcheck':
      return still('sandbox-create-stuck', facts, wait);
    case 'verifier':
    case 'grader':
      return verifierFinding(facts, wait);
    case 'agent-setup':
    case 'agent':
    case 'agent-input':
    case 'engine':
    case 'workflow':
      return agentFinding(facts, wait);
    case 'task':
    case 'collect':
    case 'sandbox-destroy':
    case 'archive':
      return stage(facts, wait);
  }
}

const environmentWaits: Partial<Record<WaitingOn['kind'], readonly [string, string]>> = {
  'image-build': [
    'the build of an image',
    'Run the build by hand and see where it stays; `slipway cancel` ends it.',
  ],
  'sandbox-create': [
    'a sandbox to be made',
    'See whether the runtime answers (`docker ps`, `runc list`), and whether the machine has room.',
  ],
  healthcheck: ["the task's health check to pass", "Run the task's health check by hand."],
};

/** A stage whose only sign of life is what it says. */
function still(kind: HangKind, facts: RolloutFacts, wait: WaitingOn): Finding {
  const { view, now } = facts;
  const { stage: name = '', lastProgressAt = wait.since } = view.progress ?? {};
  const [waitingOn, remedy] = environmentWaits[wait.kind] ?? [wait.kind, null];
  const finding: Finding = {
    kind,
    owner: wait.owner,
    waitingOn,
    since: lastProgressAt,
    deadline: wait.deadline,
    evidence: [
      `${name} for ${durationText(msSince(wait.since, now))}, without a sign for ${durationText(msSince(lastProgressAt, now))}`,
      ...(wait.detail === null ? [] : [`the last it said: ${wait.detail}`]),
    ],
    remedy,
  };
  return after(ordinaryWaitMs, finding, now);
}

function verifierFinding(facts: RolloutFacts, wait: WaitingOn): Finding {
  const { probe, now } = facts;
  const processes = processFinding(probe?.sandboxes.at(-1)?.processes ?? null);
  const ageMs = msSince(wait.since, now);
  const finding: Finding = {
    kind: 'verifier-hung',
    owner: wait.owner,
    waitingOn: wait.kind === 'grader' ? 'the grader to end' : "the task's tests to end",
    since: wait.since,
    deadline: wait.deadline,
    evidence: [
      ...(processes?.evidence ?? ['its processes cannot be looked at']),
      `it has run for ${durationText(ageMs)}`,
    ],
    remedy: 'See what the tests wait for; the deadline of the verifier ends them.',
  };
  return after(processes?.state === 'busy' ? busyVerifierMs : ordinaryWaitMs, finding, now);
}

function stage(facts: RolloutFacts, wait: WaitingOn): Finding {
  const { view, now } = facts;
  const name = view.progress?.stage ?? wait.kind;
  const finding: Finding = {
    kind: 'unclear',
    owner: wait.owner,
    waitingOn: name,
    since: wait.since,
    deadline: wait.deadline,
    evidence: [
      `${name} for ${durationText(msSince(wait.since, now))}`,
      ...(wait.detail === null ? [] : [wait.detail]),
    ],
    remedy: 'Look at the log of the rollout; `slipway cancel` ends it in any stage.',
  };
  return after(quietStageMs, finding, now);
}

/** Between two stages, or what runs it says nothing. */
function noProgress({ view, now }: RolloutFacts): Finding {
  const { rollout, progress } = view;
  const since = progress?.lastProgressAt ?? rollout.startedAt ?? rollout.acceptedAt;
  const about = {
    owner: 'scheduler',
    waitingOn: progress?.stage ?? 'its backend',
    since,
    evidence: [`nothing was said for ${durationText(msSince(since, now))}`],
  };
  const isLong = msSince(since, now) >= quietStageMs;
  return isLong
    ? { ...about, kind: 'unclear', remedy: 'Look at the log of the server.' }
    : moving(about);
}
