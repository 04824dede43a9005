/** What the rows of `npm run test:live` share. */
import { environmentCases } from '../conformance/environment/cases/all.ts';

export interface Needed {
  readonly variable: string;
  /** What it is for, as the end of a sentence. */
  readonly what: string;
}

/** The values of the variables; says which are missing and ends the process with 2 when one is. */
export function needed(provider: string, variables: readonly Needed[]): readonly string[] {
  const values = variables.map(({ variable }) => process.env[variable] ?? '');
  const missing = variables.filter((_, index) => values[index] === '');
  if (missing.length === 0) return values;
  console.error(`npm run test:live -- ${provider} uses the real service. Set:`);
  for (const { variable, what } of missing) console.error(`  ${variable.padEnd(28)} ${what}`);
  process.exit(2);
}

/** Ids of all cases but those that let a sandbox look for a listener on this machine, which the network of a provider reaches only by chance. */
export const liveCases: readonly string[] = environmentCases
  .map(({ id }) => id)
  .filter(
    (id) => !['public', 'allowlist', 'switch', 'switch-opens'].includes(id.replace('network.', '')),
  );
