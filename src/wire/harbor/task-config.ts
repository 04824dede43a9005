/**
 * task.toml. One schema reads every `schema_version` (1.0 to 1.4): the label is a free string that nothing branches on. Values
 * coerce as in Harbor's models (`lax.ts`), unknown keys are ignored, and all problems are found in one reading.
 */
import { z } from 'zod';
import { nullable } from './lax.ts';
import { parseDocument, type DocumentProblem } from './problems.ts';
import { agentTable } from './task/agent-table.ts';
import { artifactEntry } from './task/artifact-entry.ts';
import { environmentTable } from './task/environment-table.ts';
import { packageTable } from './task/package-table.ts';
import { stepTable } from './task/step-table.ts';
import {
  crossCheck,
  stringMap,
  table,
  type CrossProblem,
  type PartlyChecked,
} from './task/table.ts';
import { verifierTable } from './task/verifier-table.ts';

export const defaultSchemaVersion = '1.4';

export const taskConfigSchema = table(
  z
    .object({
      schema_version: nullable(z.string()),
      /** Older spelling of `schema_version`; the current one wins. */
      version: z.unknown().optional(),
      source: nullable(z.string()),
      multi_step_reward_strategy: nullable(z.enum(['mean', 'final'])),
      task: nullable(packageTable),
      steps: nullable(z.array(stepTable)).transform((steps) => steps ?? []),
      metadata: table(z.record(z.string(), z.unknown())).default({}),
      verifier: verifierTable.prefault({}),
      agent: agentTable.prefault({}),
      environment: environmentTable.prefault({}),
      solution: table(z.object({ env: stringMap.default({}) })).prefault({}),
      artifacts: z.array(artifactEntry).default([]),
    })
    .check(crossCheck(versionProblems))
    .check(crossCheck(repeatedStepProblems))
    .transform(({ version, schema_version: current, ...config }) => ({
      schema_version: current ?? (typeof version === 'string' ? version : defaultSchemaVersion),
      ...config,
    })),
);
export type TaskConfig = z.output<typeof taskConfigSchema>;

/** Reads a parsed task.toml: the configuration, or everything that is wrong with it. */
export function parseTaskConfig(
  document: unknown,
): { readonly value: TaskConfig } | { readonly problems: readonly DocumentProblem[] } {
  return parseDocument(taskConfigSchema, document);
}

function versionProblems(fields: PartlyChecked): readonly CrossProblem[] {
  const { schema_version: current, version } = fields;
  if (current !== null || version === undefined || typeof version === 'string') return [];
  return [{ path: ['version'], message: `expected string, received ${typeof version}` }];
}

/** Steps of one name would share a folder: Harbor runs them over each other, we refuse. */
function repeatedStepProblems(fields: PartlyChecked): readonly CrossProblem[] {
  const { steps } = fields;
  if (!Array.isArray(steps)) return [];
  const names = steps.map((step: unknown) => (step as { name?: unknown } | null)?.name);
  return names.flatMap((name, index) =>
    typeof name !== 'string' || names.indexOf(name) === index
      ? []
      : [{ path: ['steps', index, 'name'], message: `repeats the name ${JSON.stringify(name)}` }],
  );
}
