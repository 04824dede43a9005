import { z } from 'zod';
import { laxNumber, nullable } from '../lax.ts';
import { environmentTable } from './environment-table.ts';
import { networkFields, phaseNetworkProblems } from './network-fields.ts';
import {
  crossCheck,
  stringMap,
  table,
  user,
  type CrossProblem,
  type PartlyChecked,
} from './table.ts';

const collectHook = table(
  z.object({
    command: z.string(),
    service: z.string().default('main'),
    timeout_sec: laxNumber.default(60),
    user: nullable(user),
  }),
);

/** `[verifier]` and `[steps.verifier]`. */
export const verifierTable = table(
  z
    .object({
      timeout_sec: laxNumber.default(600),
      env: stringMap.default({}),
      user: nullable(user),
      ...networkFields,
      environment_mode: nullable(z.enum(['shared', 'separate'])),
      environment: nullable(environmentTable),
      collect: z.array(collectHook).default([]),
    })
    .check(crossCheck(phaseNetworkProblems))
    .check(crossCheck(modeProblems)),
);
export type VerifierTable = z.output<typeof verifierTable>;

function modeProblems(fields: PartlyChecked): readonly CrossProblem[] {
  if (fields['environment_mode'] !== 'shared' || fields['environment'] === null) return [];
  return [
    { path: ['environment_mode'], message: '"shared" and an environment table exclude each other' },
  ];
}
