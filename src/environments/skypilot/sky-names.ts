/**
 * The service has names and no labels. A sandbox of ours has a name that its spec's name alone gives, so that it is found after a crash, and
 * carries its labels as a variable, which is set by its creation and which every later command of it shows.
 */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { EnvironmentSpec, FoundSandbox } from '../environment.ts';

const prefix = 'slipway-';
/** What SkyPilot makes of it must be a label of DNS still. */
const longest = 53;
const hashDigits = 10;

export const labelsVariable = 'SLIPWAY_SANDBOX';

/** Names that are too long keep their beginning and get a hash of all of it. */
export function skyName(name: string): string {
  const whole = prefix + name;
  if (whole.length <= longest && !whole.endsWith('-')) return whole;
  const hash = createHash('sha256').update(name).digest('hex').slice(0, hashDigits);
  return `${whole.slice(0, longest - hashDigits - 1).replace(/-+$/, '')}-${hash}`;
}

export function isSkyName(name: string): boolean {
  return name.startsWith(prefix);
}

const labelled = z.object({
  name: z.string(),
  labels: z.object({
    storeId: z.string(),
    runId: z.string(),
    trial: z.string(),
    expiresAt: z.string(),
  }),
});

export function encodeLabels({ name, labels }: Pick<EnvironmentSpec, 'name' | 'labels'>): string {
  return Buffer.from(JSON.stringify({ name, labels })).toString('base64url');
}

/** null = the variable is not ours. */
export function decodeLabels(text: string): FoundSandbox | null {
  try {
    const parsed = labelled.parse(JSON.parse(Buffer.from(text.trim(), 'base64url').toString()));
    return { name: parsed.name, labels: parsed.labels };
  } catch {
    return null;
  }
}
