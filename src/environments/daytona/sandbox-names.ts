import type { SandboxLabels } from '../environment.ts';

/** Labels on every sandbox of ours. The name is one too: a foreign sandbox that only shares the name is never removed. */
export const labelKeys = {
  managed: 'slipway.managed',
  name: 'slipway.name',
  store: 'slipway.store',
  run: 'slipway.run',
  trial: 'slipway.trial',
  expires: 'slipway.expires',
} as const;

export function serviceLabels(name: string, labels: SandboxLabels): Record<string, string> {
  return {
    [labelKeys.managed]: 'true',
    [labelKeys.name]: name,
    [labelKeys.store]: labels.storeId,
    [labelKeys.run]: labels.runId,
    [labelKeys.trial]: labels.trial,
    [labelKeys.expires]: labels.expiresAt,
  };
}

/** Our labels as read back; null when a sandbox is not ours. */
export function ownLabels(
  found: Readonly<Record<string, string>>,
): { readonly name: string; readonly labels: SandboxLabels } | null {
  const name = found[labelKeys.name];
  if (name === undefined) return null;
  return {
    name,
    labels: {
      storeId: found[labelKeys.store] ?? '',
      runId: found[labelKeys.run] ?? '',
      trial: found[labelKeys.trial] ?? '',
      expiresAt: found[labelKeys.expires] ?? '',
    },
  };
}
