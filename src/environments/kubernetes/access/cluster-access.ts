/** Where the API server is and who we are to it: from the service account of the pod that this process runs in, or from a kubeconfig. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { messageOf, RolloutError } from '../../../core/errors.ts';
import type { CompiledKubernetesOptions, KubernetesPorts } from '../options.ts';
import { ExecPlugin } from './exec-plugin.ts';
import { readKubeconfig, type KubeconfigUser } from './kubeconfig.ts';

export interface ClusterTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly servername?: string;
  readonly rejectUnauthorized: boolean;
}

export interface Credentials {
  readonly token: string | null;
  readonly cert: string | null;
  readonly key: string | null;
}

export interface ClusterAccess {
  /** Base address, without a slash at its end. */
  readonly server: string;
  readonly namespace: string;
  readonly tls: ClusterTls;
  /** Asked for each connection; cheap while they are valid. `isRefused`: the last ones were not taken. */
  credentials(options: {
    readonly isRefused: boolean;
    readonly signal: AbortSignal;
  }): Promise<Credentials>;
}

const accountDir = '/var/run/secrets/kubernetes.io/serviceaccount';
/** Tokens of service accounts are replaced in their file long before they end. */
const tokenMs = 60_000;

/** CONFIG_INVALID names what is missing or not understood. */
export async function openAccess(
  options: Pick<CompiledKubernetesOptions, 'kubeconfig' | 'context' | 'namespace'>,
  ports: Pick<KubernetesPorts, 'hostVariables' | 'clock'>,
): Promise<ClusterAccess> {
  const { KUBECONFIG, HOME, KUBERNETES_SERVICE_HOST: host } = ports.hostVariables;
  const named = options.kubeconfig ?? (KUBECONFIG === '' ? undefined : KUBECONFIG) ?? null;
  if (named === null && host !== undefined && existsSync(path.join(accountDir, 'token')))
    return await fromServiceAccount(options.namespace, ports);
  const file = named ?? path.join(HOME ?? '/', '.kube', 'config');
  const { server, namespace, tls, user } = await readKubeconfig(file, options.context);
  return {
    server,
    namespace: options.namespace ?? namespace ?? 'default',
    tls,
    credentials: credentialsOf(user, ports),
  };
}

function credentialsOf(
  user: KubeconfigUser,
  ports: Pick<KubernetesPorts, 'hostVariables' | 'clock'>,
): ClusterAccess['credentials'] {
  if (user.kind === 'exec') {
    const plugin = new ExecPlugin(user.plugin, ports);
    return (options) => plugin.credentials(options);
  }
  if (user.kind === 'token-file') {
    const token = tokenFile(user.file, ports);
    return async () => ({ ...user, token: await token() });
  }
  return () => Promise.resolve(user);
}

async function fromServiceAccount(
  namespace: string | null,
  ports: Pick<KubernetesPorts, 'hostVariables' | 'clock'>,
): Promise<ClusterAccess> {
  const { KUBERNETES_SERVICE_HOST: host = '', KUBERNETES_SERVICE_PORT: port = '443' } =
    ports.hostVariables;
  const own = await readFile(path.join(accountDir, 'namespace'), 'utf8').catch(() => 'default');
  const token = tokenFile(path.join(accountDir, 'token'), ports);
  return {
    server: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    namespace: namespace ?? own.trim(),
    tls: { ca: await read(path.join(accountDir, 'ca.crt')), rejectUnauthorized: true },
    credentials: async () => ({ token: await token(), cert: null, key: null }),
  };
}

function tokenFile(file: string, { clock }: Pick<KubernetesPorts, 'clock'>): () => Promise<string> {
  let last: { readonly token: string; readonly readMs: number } | null = null;
  return async () => {
    const nowMs = clock.monotonicMs();
    if (last === null || nowMs - last.readMs > tokenMs)
      last = { token: (await read(file)).trim(), readMs: nowMs };
    return last.token;
  };
}

async function read(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new RolloutError('CONFIG_INVALID', `${file} cannot be read: ${messageOf(error)}`, {
      phase: 'config',
      field: 'environment.type',
      cause: error,
      remedy: 'Give the pod of Slipway a service account with a token.',
    });
  }
}
