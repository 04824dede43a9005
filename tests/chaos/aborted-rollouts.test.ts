import assert from 'node:assert/strict';
import { test } from 'node:test';
import { abortPhases, abortRollouts, type AbortPhase } from './aborted-rollouts.ts';
import { whyNoTrials, type TrialBackend } from './trial-servers.ts';

const common = { concurrency: 4, seed: 1, patienceMs: 20_000 };
const rows: readonly {
  readonly backend: TrialBackend;
  readonly phases: readonly AbortPhase[];
  readonly survivors: number;
  readonly latencyMs?: number;
  readonly longestStayMs?: number;
}[] = [
  { backend: 'native', phases: abortPhases, survivors: 2 },
  {
    ...{ backend: 'harbor', phases: ['running', 'verifying'], survivors: 1 },
    ...{ latencyMs: 500, longestStayMs: 1_000 },
  },
];

for (const { backend, phases, survivors, ...pace } of rows)
  test(
    `rollouts on ${backend} whose agents do not want to end are cancelled (${phases.join(', ')}): nothing of them is left, no callback goes out, the others do not notice`,
    { skip: whyNoTrials(backend) ?? false, timeout: 300_000 },
    async () => {
      const report = await abortRollouts({
        ...{ ...common, ...pace, backend, phases, cancelled: phases.length },
        rollouts: phases.length + survivors,
      });
      assert.deepEqual(report.problems, []);
      assert.deepEqual(report.aborts.map(({ phase }) => phase).sort(), [...phases].sort());
      assert.equal(report.survivors.length, survivors);
      // The same look found what it must not find afterwards.
      assert.ok(report.aborts.some(({ before }) => before > 0));
    },
  );
