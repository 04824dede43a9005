/** The backend `harbor` with a workflow and a grader written for osmosis-ai, in each environment of this machine. */
import { never } from '../../../src/core/linked-abort.ts';
import { realProviders } from '../../support/real-providers.ts';
import type { BackendSection } from './backend-section.ts';
import {
  judgeHarborRollout,
  runHarborRollouts,
  tamperedHarborEvidence,
} from './harbor-rollouts.ts';

export const harborSections: readonly BackendSection[] = realProviders().map(
  ({ kind, skip, open }) => ({
    name: `harbor, a workflow of osmosis-ai in sandboxes of ${kind}`,
    async run(count) {
      if (skip !== null) return { right: 0, problems: [`cannot be shown here: ${skip}`] };
      const { provider, close } = await open();
      try {
        await provider.preflight(never);
        const rollouts = await runHarborRollouts(provider, { count, concurrency: 4 });
        const problems = rollouts.map((evidence) =>
          judgeHarborRollout(evidence).map((problem) => `${evidence.id}: ${problem}`),
        );
        const [control] = rollouts;
        const missed = (control === undefined ? [] : tamperedHarborEvidence(control)).flatMap(
          ([what, spoilt]) =>
            judgeHarborRollout(spoilt).length > 0 ? [] : [`control, ${what}: not found`],
        );
        return {
          right: problems.filter((found) => found.length === 0).length,
          problems: [...problems.flat(), ...missed],
        };
      } finally {
        await close();
      }
    },
  }),
);
