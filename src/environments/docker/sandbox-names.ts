import { createHash } from 'node:crypto';
import type { SandboxLabels } from '../environment.ts';

/** Labels on everything of ours in the engine. The name is a label too: a foreign thing that only shares the name is never removed. */
export const labelKeys = {
  name: 'slipway.name',
  store: 'slipway.store',
  run: 'slipway.run',
  trial: 'slipway.trial',
  expires: 'slipway.expires',
} as const;

export function engineLabels(name: string, labels: SandboxLabels): Record<string, string> {
  return {
    [labelKeys.name]: name,
    [labelKeys.store]: labels.storeId,
    [labelKeys.run]: labels.runId,
    [labelKeys.trial]: labels.trial,
    [labelKeys.expires]: labels.expiresAt,
  };
}

/** Our labels as read back; null when something is not ours. */
export function sandboxLabels(
  found: Readonly<Record<string, string>> | null | undefined,
): { readonly name: string; readonly labels: SandboxLabels } | null {
  const name = found?.[labelKeys.name];
  if (name === undefined) return null;
  return {
    name,
    labels: {
      storeId: found?.[labelKeys.store] ?? '',
      runId: found?.[labelKeys.run] ?? '',
      trial: found?.[labelKeys.trial] ?? '',
      expiresAt: found?.[labelKeys.expires] ?? '',
    },
  };
}

/** Name of the host's interface for a sandbox's own network: found again from the name alone; 15 characters are the kernel's limit. */
export function bridgeName(sandbox: string): string {
  return `slw${createHash('sha256').update(sandbox).digest('hex').slice(0, 12)}`;
}
