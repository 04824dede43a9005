/** Removes what carries a sandbox's name, from the name alone, and looks afterwards. Without our labels it is somebody else's, whatever it is called. */
import { messageOf, RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { DestroyReceipt } from '../environment.ts';
import type { ApiClient } from './api/api-client.ts';
import { ApiError, apiFailure } from './api/api-error.ts';
import type { CompiledKubernetesOptions } from './options.ts';
import { foundSandbox, podName } from './pods/names.ts';
import { podDocument, type Pod } from './pods/pod-status.ts';
import type { PodWatch } from './pods/pod-watch.ts';

export const defaultDestroyMs = 90_000;

export interface RemovalParts {
  readonly client: ApiClient;
  readonly watch: PodWatch;
  readonly options: Pick<CompiledKubernetesOptions, 'networkPolicies'>;
}

interface Thing {
  readonly path: string;
  readonly what: string;
}

/**
 * The pod goes when its node confirms that its processes are dead; then its policy, so that it never has more network than it should.
 * ENVIRONMENT_DESTROY_FAILED names what is left at the deadline; ENVIRONMENT_UNAVAILABLE when the API server does not answer at all.
 */
export async function removeSandbox(
  parts: RemovalParts,
  name: string,
  options: { readonly deadlineMs: number },
): Promise<DestroyReceipt> {
  const started = performance.now();
  using limit = new LinkedAbort([], {
    ms: Math.max(1_000, options.deadlineMs),
    reason: () => new Error('the time for it is over'),
  });
  const { signal } = limit;
  const things = thingsOf(parts, name);
  let what = 'the pod';
  try {
    if (await remove(parts.client, things.pod, { name, signal })) {
      const pod = await readPod(parts.client, things.pod.path, signal);
      if (pod !== null) await gone(parts.watch, pod, signal);
    }
    what = things.policy?.what ?? what;
    if (things.policy !== null) await remove(parts.client, things.policy, { name, signal });
  } catch (error) {
    const cause: unknown = signal.aborted ? signal.reason : error;
    throw signal.aborted
      ? new RolloutError(
          'ENVIRONMENT_DESTROY_FAILED',
          `${what} ${podName(name)} could not be removed in time: ${messageOf(cause)}`,
          {
            phase: 'cleanup',
            cause,
            remedy: 'Look whether its node is down; run "slipway cleanup" once it is back.',
          },
        )
      : apiFailure(error, {
          code: 'ENVIRONMENT_DESTROY_FAILED',
          phase: 'cleanup',
          what: `removing ${podName(name)}`,
        });
  }
  return {
    name,
    confirmedGone: ['container', 'process', ...(things.policy === null ? [] : ['network'])],
    durationMs: performance.now() - started,
  };
}

export async function readPod(
  client: ApiClient,
  path: string,
  signal: AbortSignal,
): Promise<Pod | null> {
  try {
    return podDocument.parse(await client.json({ method: 'GET', path, signal }));
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}

export function podPath(client: ApiClient, sandbox: string): string {
  return `/api/v1/namespaces/${client.access.namespace}/pods/${podName(sandbox)}`;
}

export function policiesPath(client: ApiClient): string {
  return `/apis/networking.k8s.io/v1/namespaces/${client.access.namespace}/networkpolicies`;
}

function thingsOf(
  { client, options }: RemovalParts,
  name: string,
): { readonly pod: Thing; readonly policy: Thing | null } {
  return {
    pod: { path: podPath(client, name), what: 'the pod' },
    policy: options.networkPolicies
      ? { path: `${policiesPath(client)}/${podName(name)}`, what: 'the network policy' }
      : null,
  };
}

/** Whether there was something of ours to remove. */
async function remove(
  client: ApiClient,
  { path }: Thing,
  { name, signal }: { readonly name: string; readonly signal: AbortSignal },
): Promise<boolean> {
  try {
    const found = await client.json({ method: 'GET', path, signal });
    if (foundSandbox(found)?.name !== name) return false;
    const uid = (found as { readonly metadata: { readonly uid: string } }).metadata.uid;
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid } };
    await client.json({ method: 'DELETE', path, body, signal });
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return false;
    throw error;
  }
}

async function gone(watch: PodWatch, pod: Pod, signal: AbortSignal): Promise<void> {
  const { name, uid } = pod.metadata;
  const look = (state: Pod | null): object | null =>
    state?.metadata.uid === uid ? null : { gone: true };
  await watch.until({ name, pod }, look, signal);
}
