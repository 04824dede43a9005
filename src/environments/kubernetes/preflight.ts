/** Whether the API server answers, knows us, and lets us do what sandboxes need. */
import { z } from 'zod';
import { RolloutError } from '../../core/errors.ts';
import type { Logger } from '../../core/logger.ts';
import type { ApiClient } from './api/api-client.ts';
import { ApiError } from './api/api-error.ts';
import type { CompiledKubernetesOptions } from './options.ts';

interface Right {
  readonly verb: string;
  readonly group?: string;
  readonly resource: string;
  readonly subresource?: string;
}

const podRights: readonly Right[] = [
  ...['create', 'get', 'list', 'watch', 'delete'].map((verb) => ({ verb, resource: 'pods' })),
  ...['get', 'create'].map((verb) => ({ verb, resource: 'pods', subresource: 'exec' })),
];
const policyRights: readonly Right[] = ['create', 'get', 'list', 'update', 'delete'].map(
  (verb) => ({ verb, group: 'networking.k8s.io', resource: 'networkpolicies' }),
);

const review = z.object({ status: z.object({ allowed: z.boolean() }) });
const version = z.object({ gitVersion: z.string() });
const quotas = z.object({
  items: z
    .array(
      z.object({
        metadata: z.object({ name: z.string() }),
        status: z
          .object({
            hard: z.record(z.string(), z.string()).nullish(),
            used: z.record(z.string(), z.string()).nullish(),
          })
          .nullish(),
      }),
    )
    .nullish(),
});

/** ENVIRONMENT_UNAVAILABLE lists the rights that are missing. Rejects with what the client throws when it cannot ask. */
export async function checkCluster(
  client: ApiClient,
  options: Pick<CompiledKubernetesOptions, 'networkPolicies'>,
  { logger, signal }: { readonly logger: Logger; readonly signal: AbortSignal },
): Promise<void> {
  const answer = await client.json({ method: 'GET', path: '/version', signal });
  const { gitVersion } = version.parse(answer);
  const wanted = [...podRights, ...(options.networkPolicies ? policyRights : [])];
  const answers = await Promise.all(
    wanted.map(async (right) => ({ right, isAllowed: await isAllowed(client, right, signal) })),
  );
  const missing = answers.filter((each) => !each.isAllowed).map(({ right }) => named(right));
  const { namespace } = client.access;
  if (missing.length > 0)
    throw new RolloutError(
      'ENVIRONMENT_UNAVAILABLE',
      `the cluster does not let us ${missing.join(', ')} in the namespace ${namespace}`,
      {
        phase: 'environment',
        retryable: false,
        remedy: options.networkPolicies
          ? 'Bind the Role of docs/kubernetes.md to this user; without networkpolicies, set environment.kwargs.network_policies to false.'
          : 'Bind the Role of docs/kubernetes.md to this user.',
      },
    );
  await warnOfQuota(client, { logger, signal });
  logger.log('debug', 'kubernetes environment', { version: gitVersion, namespace });
}

async function isAllowed(
  client: ApiClient,
  { verb, group = '', resource, subresource = '' }: Right,
  signal: AbortSignal,
): Promise<boolean> {
  const answer = await client.json({
    method: 'POST',
    path: '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews',
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: {
        resourceAttributes: {
          namespace: client.access.namespace,
          verb,
          group,
          resource,
          subresource,
        },
      },
    },
    signal,
  });
  return review.parse(answer).status.allowed;
}

/** A namespace whose quota is used up takes no pod for now; whoever may not see quotas is told by the first refusal. */
async function warnOfQuota(
  client: ApiClient,
  { logger, signal }: { readonly logger: Logger; readonly signal: AbortSignal },
): Promise<void> {
  const path = `/api/v1/namespaces/${client.access.namespace}/resourcequotas`;
  try {
    const { items } = quotas.parse(await client.json({ method: 'GET', path, signal }));
    for (const { metadata, status } of items ?? []) {
      const [hard, used] = [status?.hard?.['pods'], status?.used?.['pods']];
      if (hard !== undefined && Number(used ?? 0) >= Number(hard))
        logger.log('warn', 'the quota of the namespace leaves no room for a pod', {
          quota: metadata.name,
          hard,
          used,
        });
    }
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 403)) throw error;
  }
}

function named({ verb, resource, subresource }: Right): string {
  return `${verb} ${resource}${subresource === undefined ? '' : `/${subresource}`}`;
}
