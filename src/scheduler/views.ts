/** What is shown of rollouts and of the admission: pure reading. */
import type { StoredRollout } from '../store/rollout-store.ts';
import type { RolloutProgress, WaitingOn } from '../wire/rollout/progress.ts';
import type { LiveRollout } from './live-rollout.ts';
import type { AdmissionView, RolloutView } from './rollout-service.ts';
import type { SchedulerCore } from './scheduler-core.ts';

export async function rolloutView(
  rollout: StoredRollout,
  { deliveries, receipts }: Pick<RolloutView, 'deliveries' | 'receipts'>,
  core: SchedulerCore,
): Promise<RolloutView> {
  const live = core.live.get(rollout.id);
  return {
    rollout,
    progress: live === undefined ? null : progressOf(live, core),
    calls: live === undefined ? null : await core.parts.gateway.activity(rollout.id),
    deliveries,
    receipts,
  };
}

export function admissionView(runningCap: number, core: SchedulerCore): AdmissionView {
  const { admission, dispatcher, queue, pause, tenants, stopping } = core;
  const { queued } = queue.counts();
  const isAccepting = !stopping.aborted && pause.mayAdmit(queued);
  return {
    capacity: admission.capacity(isAccepting),
    runningCap,
    running: dispatcher.running,
    queued,
    delivering: Math.max(0, core.live.size - dispatcher.running - queued),
    paused: pause.view,
    isStopping: stopping.aborted,
    tenants: tenants.names.map((name) => {
      const counts = queue.counts(name);
      return {
        ...{ name, weight: tenants.weight(name) },
        ...{ running: counts.leased, queued: counts.queued },
      };
    }),
  };
}

/** The scheduler's own waits; while it is executed, what the backend says. */
function progressOf(live: LiveRollout, core: SchedulerCore): RolloutProgress {
  const { acceptedAt } = live;
  if (live.diskSince !== null)
    return {
      stage: live.progress?.stage ?? live.state,
      waitingOn: {
        ...{ kind: 'disk', owner: 'operator', since: live.diskSince, deadline: null },
        detail: 'the store cannot write its next state; it is tried until it can',
      },
      lastProgressAt: live.progress?.lastProgressAt ?? live.diskSince,
    };
  if (live.progress !== null) return live.progress;
  if (live.endedBy === null)
    return { stage: 'queued', waitingOn: queueWait(live, core), lastProgressAt: acceptedAt };
  const delivery = core.parts.callbacks.activity(live.id);
  return {
    stage: 'delivering callbacks',
    waitingOn:
      delivery === null
        ? null
        : {
            ...{ kind: 'callback', owner: 'controller', since: delivery.since },
            detail: `the ${delivery.channel} callback to ${delivery.receiver} was tried ${delivery.attempts} times${delivery.lastError === null ? '' : `, the last time: ${delivery.lastError}`}`,
            deadline: null,
          },
    lastProgressAt: delivery?.since ?? acceptedAt,
  };
}

function queueWait(live: LiveRollout, core: SchedulerCore): WaitingOn {
  const { pause, queue, dispatcher } = core;
  const since = live.acceptedAt;
  const deadline = new Date(since.getTime() + live.waitMs);
  if (pause.view !== null) {
    const { reason } = pause.view;
    return {
      ...{ kind: 'paused', owner: 'operator', since: pause.view.since, deadline },
      detail: `nothing starts for now: ${reason}`,
    };
  }
  const { queued } = queue.counts();
  return {
    ...{ kind: 'admission', owner: 'scheduler', since, deadline },
    detail: `${dispatcher.running} rollouts run, ${dispatcher.cap} may; ${queued} wait, ${queue.counts(live.tenant).queued} of them of tenant ${live.tenant}`,
  };
}
