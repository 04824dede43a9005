import type { Diagnosis, DiagnosisKind } from '../../wire/rollout/diagnosis.ts';

/** What holds a rollout up, if it has for long enough. */
export interface Finding {
  readonly kind: DiagnosisKind;
  readonly owner: string;
  readonly waitingOn: string;
  readonly since: Date;
  readonly deadline?: Date | null;
  readonly evidence: readonly string[];
  readonly remedy: string | null;
}

/** For this long a wait is nothing to speak of: what is waited for is told, but not as a hang. */
export const ordinaryWaitMs = 3_000;

/** The finding of something that goes on: who is at work on what. */
export function moving(finding: Omit<Finding, 'kind' | 'remedy'>): Finding {
  return { ...finding, kind: 'moving', remedy: null };
}

/** The finding, or its wait alone while it is too young to be one. */
export function after(ms: number, finding: Finding, now: Date): Finding {
  return msSince(finding.since, now) >= ms ? finding : moving(finding);
}

export function diagnosisOf(
  rolloutId: string | null,
  { deadline = null, ...finding }: Finding,
): Diagnosis {
  return { rolloutId, ...finding, deadline };
}

export function msSince(since: Date, now: Date): number {
  return Math.max(0, now.getTime() - since.getTime());
}

/** `3.4 s`, `12 min`. */
export function durationText(ms: number): string {
  if (ms < 10_000) return `${(ms / 1000).toFixed(1)} s`;
  return ms < 180_000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`;
}

export function latest(...dates: readonly (Date | null | undefined)[]): Date | null {
  const known = dates.filter((date) => date instanceof Date);
  return known.length === 0 ? null : new Date(Math.max(...known.map((date) => date.getTime())));
}
