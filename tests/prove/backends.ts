/** Must show: workflows and graders written for osmosis-ai run unchanged, twenty rollouts on each backend that runs them. SECTION names one of them. */
import {
  judgeHarborRollout,
  runHarborRollouts,
  tamperedHarborEvidence,
} from '../chaos/backends/harbor-rollouts.ts';
import { never } from '../../src/core/linked-abort.ts';
import { realProviders, type RealProvider } from '../support/real-providers.ts';

const count = 20;

async function harborIn({ skip, open }: RealProvider): Promise<boolean> {
  if (skip !== null) {
    console.log(`cannot be shown here: ${skip}`);
    return false;
  }
  const { provider, close } = await open();
  try {
    await provider.preflight(never);
    const rollouts = await runHarborRollouts(provider, { count, concurrency: 4 });
    const failed = rollouts.filter((evidence) => {
      const problems = judgeHarborRollout(evidence);
      const reward = evidence.result.sample?.reward ?? null;
      console.log(`${evidence.id}: reward ${String(reward)} ${problems.join('; ')}`);
      return problems.length > 0;
    });
    const [control] = rollouts;
    const missed = (control === undefined ? [] : tamperedHarborEvidence(control)).filter(
      ([what, spoilt]) => {
        const isFound = judgeHarborRollout(spoilt).length > 0;
        console.log(`control, ${what}: ${isFound ? 'found' : 'NOT FOUND'}`);
        return !isFound;
      },
    );
    console.log(`${rollouts.length} rollouts, ${failed.length} not as specified`);
    return rollouts.length === count && failed.length === 0 && missed.length === 0;
  } finally {
    await close();
  }
}

const sections: Readonly<Record<string, () => Promise<boolean>>> = Object.fromEntries(
  realProviders().map((real) => [`harbor-${real.kind}`, () => harborIn(real)]),
);

const only = process.env['SECTION'];
for (const [name, run] of Object.entries(sections)) {
  if (only !== undefined && only !== name) continue;
  console.log(`== ${name}`);
  if (!(await run())) process.exitCode = 1;
}
