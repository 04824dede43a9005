import { z } from 'zod';
import { RolloutError } from '../../../core/errors.ts';
import { annotationKeys } from './names.ts';

const state = z.object({
  waiting: z.object({ reason: z.string().nullish(), message: z.string().nullish() }).nullish(),
  running: z.object({ startedAt: z.string().nullish() }).nullish(),
  terminated: z
    .object({ reason: z.string().nullish(), message: z.string().nullish(), exitCode: z.number() })
    .nullish(),
});

export const podDocument = z.object({
  metadata: z.object({
    name: z.string(),
    uid: z.string(),
    resourceVersion: z.string(),
    deletionTimestamp: z.string().nullish(),
    annotations: z.record(z.string(), z.string()).nullish(),
  }),
  status: z
    .object({
      phase: z.string().nullish(),
      reason: z.string().nullish(),
      message: z.string().nullish(),
      conditions: z
        .array(
          z.object({
            type: z.string(),
            status: z.string(),
            reason: z.string().nullish(),
            message: z.string().nullish(),
          }),
        )
        .nullish(),
      containerStatuses: z.array(z.object({ state: state.nullish() })).nullish(),
    })
    .nullish(),
});

export type Pod = z.infer<typeof podDocument>;

export function isUp(pod: Pod): boolean {
  return pod.metadata.deletionTimestamp == null && containerState(pod)?.running != null;
}

export function markOf(pod: Pod): string | null {
  return pod.metadata.annotations?.[annotationKeys.mark] ?? null;
}

/** What a pod that is not up yet waits for, in a few words; null when it says nothing. */
export function waitsFor(pod: Pod): string | null {
  const waiting = containerState(pod)?.waiting;
  if (waiting?.reason != null) return waiting.reason;
  const unscheduled = pod.status?.conditions?.find(
    ({ type, status }) => type === 'PodScheduled' && status === 'False',
  );
  return unscheduled === undefined
    ? null
    : `${unscheduled.reason ?? 'Unscheduled'}: ${unscheduled.message ?? ''}`;
}

const badImage = new Set(['InvalidImageName', 'ErrImageNeverPull', 'ImagePullBackOff']);
const noSuchImage =
  /not found|manifest unknown|does not exist|repository name must|pull access denied|no such host|unauthorized|denied/i;
const badContainer = new Set([
  'CreateContainerConfigError',
  'CreateContainerError',
  'RunContainerError',
  'StartError',
]);

/** Why a pod will not come up any more; null while it still may. */
export function startFailure(pod: Pod, reference: string): RolloutError | null {
  if (pod.metadata.deletionTimestamp != null) return failed('the pod was removed while it started');
  const current = containerState(pod);
  const { reason, message } = current?.waiting ?? {};
  const says = `${reason ?? ''}: ${message ?? ''}`;
  const isRefused = reason === 'ErrImagePull' && noSuchImage.test(message ?? '');
  if (isRefused || (reason != null && badImage.has(reason)))
    return new RolloutError('IMAGE_NOT_FOUND', `the cluster cannot pull ${reference}: ${says}`, {
      phase: 'environment',
      remedy:
        'Push the image to a registry that the nodes reach, and name pull secrets in environment.kwargs.image_pull_secrets.',
    });
  if (reason != null && badContainer.has(reason))
    return failed(`the container does not start: ${says}`);
  const ended = current?.terminated;
  if (ended != null)
    return failed(
      `the container ended with ${ended.exitCode} while it started: ${ended.reason ?? ''} ${ended.message ?? ''}`,
    );
  if (pod.status?.phase === 'Failed')
    return failed(`the pod failed: ${pod.status.reason ?? ''} ${pod.status.message ?? ''}`, true);
  return null;
}

function containerState(pod: Pod): z.infer<typeof state> | null {
  return pod.status?.containerStatuses?.[0]?.state ?? null;
}

/** What the image or its container does is the same the next time; what the cluster does is not. */
function failed(message: string, retryable = false): RolloutError {
  return new RolloutError('ENVIRONMENT_START_FAILED', message.trim(), {
    phase: 'environment',
    retryable,
    remedy: 'Check that the image has "sh", and look at the events of the namespace.',
  });
}
