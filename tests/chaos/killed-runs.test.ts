import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { killRuns } from './killed-runs.ts';

describe('a run that was killed', () => {
  for (const [environment, moments] of [
    ['local', 2],
    ['docker', 2],
  ] as const)
    it(`is cleaned up and resumed by the next start in ${environment}`, async () => {
      const report = await killRuns({ environment, moments, seed: 7 });
      assert.deepEqual(report.problems, []);
      assert.ok(report.moments.some((moment) => moment.kind === 'in flight'));
    });

  it('control: sandboxes that no start removes are seen', async () => {
    const report = await killRuns({
      environment: 'local',
      moments: 3,
      seed: 7,
      isJournalLost: true,
    });
    assert.ok(
      report.problems.some((line) => line.startsWith('sandboxes of the dead run were there')),
    );
  });
});
