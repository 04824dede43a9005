import assert from 'node:assert/strict';
import { test } from 'node:test';
import { planText } from '../chaos/fault-plan.ts';
import { runFaultSeeds } from '../chaos/fault-seeds.ts';
import { judge } from '../chaos/fault-verdict.ts';
import { tampered } from '../chaos/tampered-evidence.ts';
import { whyNoRunc } from '../environments/local/local-bench.ts';

test(
  'whatever the engine does, a trial ends typed and in time, with no reward of its own making and nothing left',
  { skip: whyNoRunc() ?? false, timeout: 600_000 },
  async (context) => {
    const { calm, seeds, left } = await runFaultSeeds({ firstSeed: 1, seeds: 8, concurrency: 4 });
    assert.deepEqual(
      seeds.flatMap(({ plan, problems }) =>
        problems.map((problem) => `seed ${plan.seed}, ${planText(plan)}: ${problem}`),
      ),
      [],
    );
    assert.deepEqual(left, []);
    assert.equal(seeds.length, 8);

    assert.deepEqual([calm.code, calm.rewards, calm.problems], [null, { reward: 1 }, []]);
    assert.ok(calm.evidence);
    for (const [what, evidence] of tampered(calm.evidence))
      await context.test(`${what} is found`, () => assert.notDeepEqual(judge(evidence), []));
  },
);
