import { z } from 'zod';
import { canonicalJson } from '../../core/canonical-json.ts';
import { laxInteger, nullable } from './lax.ts';
import { retryConfigSchema } from './job-config.ts';
import { trialLockSchema, type FileLock, type TrialLock } from './trial-lock.ts';

/** `lock.json` of a job folder: what exactly its trials run. A resumed job must come to the same lock. */
export const jobLockSchema = z.object({
  schema_version: laxInteger.default(3),
  created_at: nullable(z.string()),
  /** The program that made it; never compared. */
  harbor: nullable(z.record(z.string(), z.unknown())),
  n_concurrent_trials: laxInteger.default(4),
  retry: retryConfigSchema.prefault({}),
  trials: z.array(trialLockSchema).default([]),
});
export type JobLock = z.output<typeof jobLockSchema>;

/**
 * Whether `later` keeps every promise of `earlier`: trials as a multiset, tasks and files by digest only. Who made a lock, when, and
 * in which schema version does not count. `later` may hold more trials: those whose task could not be loaded the first time.
 * Compare locks whose variables are masked.
 */
export function keepsLock(earlier: JobLock, later: JobLock): boolean {
  if (comparableSettings(earlier) !== comparableSettings(later)) return false;
  const offered = countTexts(later.trials.map(comparableTrial));
  return [...countTexts(earlier.trials.map(comparableTrial))].every(
    ([text, count]) => (offered.get(text) ?? 0) >= count,
  );
}

function comparableSettings({ n_concurrent_trials, retry }: JobLock): string {
  return canonicalJson({
    n_concurrent_trials,
    retry: {
      ...retry,
      include_exceptions: retry.include_exceptions?.toSorted() ?? null,
      exclude_exceptions: retry.exclude_exceptions.toSorted(),
    },
  });
}

function countTexts(texts: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
  return counts;
}

/** A trial's lock as text; equal trials have equal texts. */
export function comparableTrial(lock: TrialLock): string {
  const digests = (files: readonly FileLock[]): string[] => files.map(({ digest }) => digest);
  return canonicalJson({
    ...lock,
    schema_version: 0,
    task: lock.task.digest,
    extra_instructions: digests(lock.extra_instructions),
    extra_docker_compose: digests(lock.extra_docker_compose),
    environment: { ...lock.environment, extra_docker_compose: [] },
    agent: { ...lock.agent, skills: [] },
    skills: lock.skills.map(({ name, digest }) => ({ name, digest })),
  });
}
