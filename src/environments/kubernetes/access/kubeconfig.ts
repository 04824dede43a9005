/** A kubeconfig file: one context of it, with its cluster and its user. What is not understood is refused by name. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { parse } from 'yaml';
import { z } from 'zod';
import { messageOf, RolloutError } from '../../../core/errors.ts';
import type { ClusterTls, Credentials } from './cluster-access.ts';
import type { PluginCommand } from './exec-plugin.ts';

const text = z.string().min(1).optional();
const named = <Key extends string, T extends z.ZodType>(key: Key, value: T) =>
  z.array(z.object({ name: z.string(), [key]: value } as { name: z.ZodString } & Record<Key, T>));

const clusterSchema = z.object({
  server: z.string(),
  'certificate-authority': text,
  'certificate-authority-data': text,
  'insecure-skip-tls-verify': z.boolean().optional(),
  'tls-server-name': text,
  'proxy-url': text,
});

const userSchema = z.object({
  token: text,
  tokenFile: text,
  'client-certificate': text,
  'client-certificate-data': text,
  'client-key': text,
  'client-key-data': text,
  username: text,
  'auth-provider': z.unknown().optional(),
  exec: z
    .object({
      apiVersion: z.string(),
      command: z.string(),
      args: z.array(z.string()).nullish(),
      env: z.array(z.object({ name: z.string(), value: z.string() })).nullish(),
      provideClusterInfo: z.boolean().optional(),
    })
    .optional(),
});

const schema = z.object({
  'current-context': text,
  contexts: named('context', z.object({ cluster: z.string(), user: text, namespace: text })),
  clusters: named('cluster', clusterSchema),
  users: named('user', userSchema.nullish()).nullish(),
});

export type KubeconfigUser =
  | ({ readonly kind: 'fixed' } & Credentials)
  | ({ readonly kind: 'token-file'; readonly file: string } & Credentials)
  | { readonly kind: 'exec'; readonly plugin: PluginCommand };

export interface KubeconfigContext {
  readonly server: string;
  readonly namespace: string | null;
  readonly tls: ClusterTls;
  readonly user: KubeconfigUser;
}

/** CONFIG_INVALID names the file and what is wrong with it. Only the first file of a list in KUBECONFIG is read. */
export async function readKubeconfig(
  list: string,
  wantedContext: string | null,
): Promise<KubeconfigContext> {
  const file = list.split(path.delimiter)[0] ?? list;
  const document = await readDocument(file);
  const wanted = wantedContext ?? document['current-context'];
  const context = document.contexts.find(({ name }) => name === wanted)?.context;
  if (context === undefined)
    throw invalid(
      file,
      `has no context ${JSON.stringify(wanted ?? '')}`,
      'environment.kwargs.context',
    );
  const cluster = document.clusters.find(({ name }) => name === context.cluster)?.cluster;
  if (cluster === undefined) throw invalid(file, `has no cluster ${context.cluster}`);
  if (cluster['proxy-url'] !== undefined)
    throw invalid(file, 'names a proxy-url, which is not supported');
  const user = document.users?.find(({ name }) => name === context.user)?.user ?? {};
  const ca = await content(file, cluster, 'certificate-authority');
  const servername = cluster['tls-server-name'];
  return {
    server: cluster.server.replace(/\/+$/, ''),
    namespace: context.namespace ?? null,
    tls: {
      ...(ca !== null && { ca }),
      ...(servername !== undefined && { servername }),
      rejectUnauthorized: cluster['insecure-skip-tls-verify'] !== true,
    },
    user: await userOf(file, user),
  };
}

async function userOf(file: string, user: z.infer<typeof userSchema>): Promise<KubeconfigUser> {
  if (user['auth-provider'] !== undefined)
    throw invalid(file, 'names an auth-provider, which Kubernetes has replaced by exec plugins');
  if (user.username !== undefined)
    throw invalid(file, 'names a username, which no current API server takes');
  if (user.exec !== undefined) {
    const { apiVersion, command, args, env } = user.exec;
    if (user.exec.provideClusterInfo === true)
      throw invalid(
        file,
        'has an exec plugin that wants provideClusterInfo, which is not supported',
      );
    const isPath = command.includes('/') && !path.isAbsolute(command);
    const program = isPath ? path.resolve(path.dirname(file), command) : command;
    const variables = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
    return {
      kind: 'exec',
      plugin: { apiVersion, command: program, args: args ?? [], variables },
    };
  }
  const credentials = {
    token: user.token ?? null,
    cert: await content(file, user, 'client-certificate'),
    key: await content(file, user, 'client-key'),
  };
  if (user.token !== undefined || user.tokenFile === undefined)
    return { kind: 'fixed', ...credentials };
  return {
    kind: 'token-file',
    file: path.resolve(path.dirname(file), user.tokenFile),
    ...credentials,
  };
}

/** PEM text of a field, in place or in a file beside. */
async function content<Key extends string>(
  file: string,
  fields: Partial<Record<Key | `${Key}-data`, unknown>>,
  key: Key,
): Promise<string | null> {
  const inPlace = fields[`${key}-data`];
  if (typeof inPlace === 'string') return Buffer.from(inPlace, 'base64').toString('utf8');
  const beside = fields[key];
  if (typeof beside !== 'string') return null;
  const named = path.resolve(path.dirname(file), beside);
  return await readFile(named, 'utf8').catch((error: unknown) => {
    throw invalid(file, `names ${named}, which cannot be read: ${messageOf(error)}`);
  });
}

async function readDocument(file: string): Promise<z.infer<typeof schema>> {
  const raw = await readFile(file, 'utf8').catch((error: unknown) => {
    throw invalid(file, `cannot be read: ${messageOf(error)}`);
  });
  try {
    return schema.parse(parse(raw));
  } catch (error) {
    const why = error instanceof z.ZodError ? z.prettifyError(error) : messageOf(error);
    throw invalid(file, `is not a kubeconfig: ${why}`);
  }
}

function invalid(
  file: string,
  what: string,
  field = 'environment.kwargs.kubeconfig',
): RolloutError {
  return new RolloutError('CONFIG_INVALID', `the kubeconfig ${file} ${what}`, {
    phase: 'config',
    field,
    remedy: 'Name a kubeconfig file in KUBECONFIG, and a context in environment.kwargs.context.',
  });
}
