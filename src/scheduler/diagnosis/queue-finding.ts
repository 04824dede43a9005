import type { AdmissionView } from '../rollout-service.ts';
import type { RolloutFacts, ServerFacts } from '../diagnosis.ts';
import { after, durationText, msSince, ordinaryWaitMs, type Finding } from './finding.ts';

/** What a rollout waits for that has not started. */
export function queueFinding(facts: RolloutFacts): Finding {
  const { view, admission, now } = facts;
  const { acceptedAt, tenant } = view.rollout;
  const deadline = view.progress?.waitingOn?.deadline ?? null;
  const pause = pauseFinding(facts);
  const waited = `accepted ${durationText(msSince(acceptedAt, now))} ago`;
  if (pause !== null) return { ...pause, deadline, evidence: [...pause.evidence, waited] };
  const own = admission.tenants.find(({ name }) => name === tenant);
  return after(
    ordinaryWaitMs,
    {
      kind: 'admission-starved',
      owner: 'scheduler',
      waitingOn: 'a running place',
      since: acceptedAt,
      deadline,
      evidence: [
        ...placesText(admission),
        ...(own === undefined
          ? []
          : [
              `tenant ${tenant} (weight ${own.weight}) has ${own.running} running and ${own.queued} queued`,
            ]),
        waited,
      ],
      remedy:
        admission.runningCap < admission.capacity.max_concurrent
          ? "The engine's memory is full: it takes more when calls end. Let fewer rollouts run at once, or add engines."
          : 'See what the running rollouts wait for, or raise admission.max_concurrent.',
    },
    now,
  );
}

/** null = nothing is paused. */
export function pauseFinding({ admission, now }: ServerFacts): Finding | null {
  const { paused, isStopping, queued } = admission;
  if (isStopping)
    return {
      kind: 'paused',
      owner: 'operator',
      waitingOn: 'the next start of the server',
      since: now,
      evidence: ['the server shuts down: nothing new starts'],
      remedy: 'Start the server again on the same data folder: what waits is kept.',
    };
  if (paused === null) return null;
  return {
    kind: 'paused',
    owner: 'operator',
    waitingOn: 'the pause of the admission to end',
    since: paused.since,
    evidence: [
      `paused for ${durationText(msSince(paused.since, now))}: ${paused.reason}`,
      `the next try is at ${paused.retryAt.toISOString()}; ${queued} rollouts wait`,
    ],
    remedy: 'Mend what the last failures name; the server tries again by itself.',
  };
}

export function placesText(admission: AdmissionView): readonly string[] {
  const { running, runningCap, queued, delivering, capacity } = admission;
  const cap =
    runningCap < capacity.max_concurrent
      ? `${runningCap} places (of ${capacity.max_concurrent}; the engine's memory is full)`
      : `${runningCap} places`;
  return [
    `${running} of ${cap} are taken, ${queued} rollouts wait, ${delivering} are being delivered`,
  ];
}
