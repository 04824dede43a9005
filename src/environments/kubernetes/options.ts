import path from 'node:path';
import { z } from 'zod';
import { systemClock, type Clock } from '../../core/clock.ts';
import { RolloutError } from '../../core/errors.ts';
import { silentLogger, type Logger } from '../../core/logger.ts';

const absolutePath = z
  .string()
  .refine((value) => path.isAbsolute(value), 'must be an absolute path');
const texts = z.record(z.string(), z.string());

const schema = z.strictObject({
  kubeconfig: absolutePath.nullable().default(null),
  context: z.string().nullable().default(null),
  namespace: z.string().nullable().default(null),
  networkPolicies: z.boolean().default(true),
  runAsUser: z.number().int().nonnegative().nullable().default(null),
  requestFraction: z.number().min(0).max(1).default(1),
  serviceAccount: z.string().nullable().default(null),
  imagePullSecrets: z.array(z.string()).default([]),
  imagePullPolicy: z.enum(['Always', 'IfNotPresent', 'Never']).nullable().default(null),
  runtimeClass: z.string().nullable().default(null),
  nodeSelector: texts.default({}),
  tolerations: z.array(z.record(z.string(), z.unknown())).default([]),
  labels: texts.default({}),
  annotations: texts.default({}),
  startTimeoutMs: z.number().int().positive().default(900_000),
  extraCaBundle: absolutePath.nullable().default(null),
});

/** What a user sets; see {@link CompiledKubernetesOptions} for the meaning of each. */
export type KubernetesOptions = z.input<typeof schema>;

export interface CompiledKubernetesOptions {
  /** Kubeconfig file; null = the service account of the pod this process runs in, else `~/.kube/config`. */
  readonly kubeconfig: string | null;
  /** Context of the kubeconfig; null = its current one. */
  readonly context: string | null;
  /** null = that of the context or of the service account, else `default`. */
  readonly namespace: string | null;
  /** A NetworkPolicy for each pod. Without them every sandbox has the network of the cluster, and tasks that want less are refused. */
  readonly networkPolicies: boolean;
  /** Uid of the containers; null = the image's USER. Commands as other users need 0. */
  readonly runAsUser: number | null;
  /** What of a task's limits a pod asks its node to hold free for it: 1 = all, 0 = nothing. */
  readonly requestFraction: number;
  /** Of the pods; its token is never brought into them. */
  readonly serviceAccount: string | null;
  readonly imagePullSecrets: readonly string[];
  readonly imagePullPolicy: 'Always' | 'IfNotPresent' | 'Never' | null;
  /** RuntimeClass of the pods, such as gVisor's or Kata's. */
  readonly runtimeClass: string | null;
  readonly nodeSelector: Readonly<Record<string, string>>;
  readonly tolerations: readonly Readonly<Record<string, unknown>>[];
  /** Besides our own, which win. */
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
  /** From the request for a pod until commands run in it: a place on a node and the pull of the image are in it. */
  readonly startTimeoutMs: number;
  /** PEM file brought into sandboxes whose spec names none; null = none. */
  readonly extraCaBundle: string | null;
}

/** CONFIG_INVALID lists every problem. */
export function compileKubernetesOptions(options: KubernetesOptions): CompiledKubernetesOptions {
  const parsed = schema.safeParse(options);
  if (parsed.success) return Object.freeze(parsed.data);
  throw new RolloutError(
    'CONFIG_INVALID',
    `options of the kubernetes environment: ${z.prettifyError(parsed.error)}`,
    {
      phase: 'config',
      field: parsed.error.issues
        .map((issue) => ['environment.kwargs', ...issue.path].join('.'))
        .join(', '),
    },
  );
}

/** Collaborators of the kubernetes environment. */
export interface KubernetesPorts {
  readonly clock: Clock;
  readonly logger: Logger;
  /** In [0, 1), for the jitter of pauses. */
  readonly random: () => number;
  /** Where KUBECONFIG, HOME and the variables of a pod are looked for, and what exec plugins inherit. */
  readonly hostVariables: Readonly<Record<string, string | undefined>>;
}

export function kubernetesPorts(ports: Partial<KubernetesPorts>): KubernetesPorts {
  return {
    clock: systemClock,
    logger: silentLogger,
    random: Math.random,
    hostVariables: {},
    ...ports,
  };
}
