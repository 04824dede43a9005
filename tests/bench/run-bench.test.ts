import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { benchNames } from '../../bench/all/benches.ts';
import { runBench } from '../../bench/all/run-bench.ts';
import { plannedMs } from '../../bench/all/times.ts';

describe('benches one after the other', () => {
  it('one that is out of time reports what it has, named as such', async () => {
    const run = await runBench('../tests/bench/late-bench', 3_000);
    assert.deepEqual(run.document?.figures, [{ name: 'pace', value: 7, unit: '/s' }]);
    assert.equal(run.document.isPartial, true);
    assert.match(run.problem ?? '', /longer than its 3 s/);
  });

  it('are planned for less than nine minutes together', () => {
    const allMs = benchNames().reduce((sum, bench) => sum + plannedMs(bench), 0);
    assert.ok(allMs > 60_000 && allMs <= 540_000, `${allMs / 1_000} s`);
  });
});
