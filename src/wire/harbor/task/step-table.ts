import { z } from 'zod';
import { laxNumber, nullable } from '../lax.ts';
import { agentTable } from './agent-table.ts';
import { artifactEntry } from './artifact-entry.ts';
import { healthcheckTable } from './healthcheck.ts';
import { table } from './table.ts';
import { verifierTable } from './verifier-table.ts';

/** A step's name is a folder's name in the task and in the trial: Harbor takes any string, we refuse what would leave that folder. */
const stepName = z.string().superRefine((name, context) => {
  const problem = stepNameProblem(name);
  if (problem !== null) context.addIssue({ code: 'custom', message: problem });
});

function stepNameProblem(name: string): string | null {
  if (name.trim() === '' || name === '.') return 'must name a folder';
  if (/[/\\]/.test(name)) return 'must not contain a slash or backslash';
  if (name.includes('..')) return 'must not contain ".."';
  return /[\u0000-\u001f]/.test(name) ? 'must not contain control characters' : null;
}

const minReward = z.union([laxNumber, table(z.record(z.string(), laxNumber))], {
  error: 'expected a number, or a table of numbers by reward channel',
});

/** `[[steps]]`. */
export const stepTable = table(
  z.object({
    name: stepName,
    agent: agentTable.prefault({}),
    verifier: verifierTable.prefault({}),
    min_reward: nullable(minReward),
    healthcheck: nullable(healthcheckTable),
    artifacts: z.array(artifactEntry).default([]),
  }),
);
