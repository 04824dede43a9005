import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import { laxBoolean, nullable } from './lax.ts';
import {
  agentConfigSchema,
  artifactEntrySchema,
  environmentConfigSchema,
  timeoutMultiplierFields,
  verifierConfigSchema,
} from './run-config.ts';
import { taskEntrySchema } from './task-entry.ts';

const sourceTrialSchema = z.object({
  action: z.literal('regrade'),
  type: z.enum(['local', 'hub']),
  trial_id: nullable(z.string()),
  path: nullable(z.string()),
});

/** Everything that defines one trial; `config.json` of a trial folder. */
export const trialConfigSchema = z
  .object({
    task: taskEntrySchema,
    /** Empty = generated from the task's name. */
    trial_name: z.string().default(''),
    trials_dir: z.string().default('trials'),
    install_only: laxBoolean.default(false),
    ...timeoutMultiplierFields,
    agent: agentConfigSchema.prefault({}),
    /** A simulated user. Read, never run: a trial that has one ends with CAPABILITY_UNSUPPORTED. */
    user_agent: nullable(z.record(z.string(), z.unknown())),
    environment: environmentConfigSchema.prefault({}),
    verifier: verifierConfigSchema.prefault({}),
    artifacts: z.array(artifactEntrySchema).default([]),
    extra_instruction_paths: z.array(z.string()).default([]),
    extra_instructions: z.array(z.string()).default([]),
    job_id: nullable(z.string()),
    source_trial: nullable(sourceTrialSchema),
  })
  .transform((config) =>
    config.install_only ? { ...config, verifier: { ...config.verifier, disable: true } } : config,
  )
  .check(({ value, issues }) => {
    if (value.install_only && value.source_trial !== null)
      issues.push({
        code: 'custom',
        input: value,
        path: ['source_trial'],
        message: 'install_only and a source trial exclude each other',
      });
  });

export type TrialConfig = Readonly<z.output<typeof trialConfigSchema>>;

/** Whether two configurations describe the same trial: the name and the job do not count. Compare dumped, masked configurations. */
export function isSameTrial(one: TrialConfig, other: TrialConfig): boolean {
  const plain = (config: TrialConfig) => ({ ...config, trial_name: '', job_id: null });
  return isDeepStrictEqual(plain(one), plain(other));
}
