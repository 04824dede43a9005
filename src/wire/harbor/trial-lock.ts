import { z } from 'zod';
import { laxBoolean, laxInteger, nullable } from './lax.ts';
import {
  agentConfigSchema,
  environmentConfigSchema,
  timeoutMultiplierFields,
  verifierConfigSchema,
} from './run-config.ts';

const optionalText = nullable(z.string());

/** Which task content a trial ran; entries are equal when their digests are. */
export const taskLockSchema = z.object({
  name: z.string(),
  version: optionalText,
  type: z.enum(['local', 'git', 'package']),
  /** `sha256:<hex>`: content hash, for packages the registry's. */
  digest: z.string(),
  source: optionalText,
  path: optionalText,
  git_url: optionalText,
  /** The commit that was really fetched. */
  git_commit_id: optionalText,
});
export type TaskLock = z.output<typeof taskLockSchema>;

export const skillLockSchema = z.object({
  name: z.string(),
  source: z.string(),
  digest: z.string(),
  git_url: optionalText,
  git_commit_id: optionalText,
});
export type SkillLock = z.output<typeof skillLockSchema>;

/** A file or inline text that went in; `digest` is `sha256:<hex>` of its bytes. */
export const fileLockSchema = z.object({ path: optionalText, digest: z.string() });
export type FileLock = z.output<typeof fileLockSchema>;

/** `lock.json` of a trial folder and one row of a job's: everything that decides what the trial does. */
export const trialLockSchema = z.object({
  schema_version: laxInteger.default(2),
  task: taskLockSchema,
  install_only: laxBoolean.default(false),
  ...timeoutMultiplierFields,
  extra_instructions: z.array(fileLockSchema).default([]),
  agent: agentConfigSchema.prefault({}),
  skills: z.array(skillLockSchema).default([]),
  environment: environmentConfigSchema.prefault({}),
  extra_docker_compose: z.array(fileLockSchema).default([]),
  verifier: verifierConfigSchema
    .extend({ environment_mode: nullable(z.enum(['shared', 'separate'])) })
    .prefault({}),
  source_trial: nullable(z.record(z.string(), z.unknown())),
});
export type TrialLock = z.output<typeof trialLockSchema>;
