import assert from 'node:assert/strict';
import { test } from 'node:test';
import { whyNoRunc } from '../environments/local/local-bench.ts';
import { abortPhases, abortRollouts } from './aborted-rollouts.ts';

const reason = whyNoRunc();

test(
  'rollouts whose agents do not want to end are cancelled in every phase: nothing of them is left, no callback goes out, the others do not notice',
  { skip: reason ?? false, timeout: 300_000 },
  async () => {
    const { aborts, survivors, problems } = await abortRollouts({
      ...{ rollouts: 8, cancelled: 6, concurrency: 4, seed: 1, patienceMs: 20_000 },
    });
    assert.deepEqual(problems, []);
    assert.deepEqual(aborts.map(({ phase }) => phase).sort(), [...abortPhases].sort());
    assert.equal(survivors.length, 2);
    // The same look found what it must not find afterwards.
    assert.ok(aborts.some(({ before }) => before > 0));
  },
);
