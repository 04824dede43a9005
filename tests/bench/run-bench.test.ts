import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { runBench } from '../../bench/all/run-bench.ts';
import { plannedMs } from '../../bench/all/times.ts';
import { repositoryDir } from '../support/slipway-cli.ts';

describe('benches one after the other', () => {
  it('one that is out of time reports what it has, named as such', async () => {
    const run = await runBench('../tests/bench/late-bench', 3_000);
    assert.deepEqual(run.document?.figures, [{ name: 'pace', value: 7, unit: '/s' }]);
    assert.equal(run.document.isPartial, true);
    assert.match(run.problem ?? '', /longer than its 3 s/);
  });

  it('are planned for less than eight minutes together', () => {
    const benches = readdirSync(path.join(repositoryDir, 'bench')).filter((file) =>
      file.endsWith('.ts'),
    );
    const allMs = benches.reduce((sum, file) => sum + plannedMs(path.basename(file, '.ts')), 0);
    // The files that are no bench are counted as well.
    assert.ok(allMs <= 550_000, `${allMs / 1_000} s`);
  });
});
