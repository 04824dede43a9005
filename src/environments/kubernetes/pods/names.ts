/**
 * How things of ours are named and marked in a cluster. Label values take 63 plain characters, so the whole truth stands in annotations; labels are for
 * finding, and hold what fits.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { FoundSandbox, SandboxLabels } from '../../environment.ts';

export const managedBy = 'app.kubernetes.io/managed-by';
export const ours = `${managedBy}=slipway`;
export const labelKeys = {
  sandbox: 'slipway/sandbox',
  store: 'slipway/store',
  run: 'slipway/run',
} as const;
export const annotationKeys = {
  name: 'slipway/name',
  store: 'slipway/store',
  run: 'slipway/run',
  trial: 'slipway/trial',
  expires: 'slipway/expires',
  /** Of one start: tells a pod whose creation was asked for twice from somebody else's of the same name. */
  mark: 'slipway/start',
} as const;

export const container = 'sandbox';

/** The name of a sandbox where it may name a pod; else one that is found again from it. */
export function podName(sandbox: string): string {
  if (/^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/.test(sandbox)) return sandbox;
  const hash = createHash('sha256').update(sandbox).digest('hex').slice(0, 10);
  return `${sandbox.slice(0, 50).replace(/-+$/, '')}-${hash}`;
}

export function podLabels(sandbox: string, labels: SandboxLabels): Record<string, string> {
  return {
    [managedBy]: 'slipway',
    [labelKeys.sandbox]: podName(sandbox),
    ...fitting(labelKeys.store, labels.storeId),
    ...fitting(labelKeys.run, labels.runId),
  };
}

export function podAnnotations(sandbox: string, labels: SandboxLabels): Record<string, string> {
  return {
    [annotationKeys.name]: sandbox,
    [annotationKeys.store]: labels.storeId,
    [annotationKeys.run]: labels.runId,
    [annotationKeys.trial]: labels.trial,
    [annotationKeys.expires]: labels.expiresAt,
  };
}

const metadata = z.object({
  metadata: z.object({
    name: z.string(),
    annotations: z.record(z.string(), z.string()).nullish(),
    labels: z.record(z.string(), z.string()).nullish(),
  }),
});

/** Our labels as read back; null when something is not ours. */
export function foundSandbox(object: unknown): FoundSandbox | null {
  const parsed = metadata.safeParse(object);
  if (!parsed.success) return null;
  const { annotations, labels } = parsed.data.metadata;
  const name = annotations?.[annotationKeys.name];
  if (name === undefined || labels?.[managedBy] !== 'slipway') return null;
  return {
    name,
    labels: {
      storeId: annotations?.[annotationKeys.store] ?? '',
      runId: annotations?.[annotationKeys.run] ?? '',
      trial: annotations?.[annotationKeys.trial] ?? '',
      expiresAt: annotations?.[annotationKeys.expires] ?? '',
    },
  };
}

function fitting(key: string, value: string): Record<string, string> {
  const fits = /^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$/.test(value);
  return fits ? { [key]: value } : {};
}
