import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { oneReport } from '../../bench/all/one-report.ts';
import type { BenchRun } from '../../bench/all/run-bench.ts';

const machine = { cores: 2, node: 'v24', at: '2026-01-01' };
const goal = { name: 'a | b', limit: 2, direction: 'at most', unit: 'ms' } as const;
const run = (isMet: boolean): BenchRun => ({
  ...{ bench: 'server', seconds: 3, problem: null },
  document: {
    ...{ bench: 'server', size: 'short', figures: [{ name: 'pace', value: 7, unit: '/s' }] },
    goals: [{ ...goal, measured: isMet ? 1 : 3, isMet }],
  },
});
const partial: BenchRun = {
  ...run(true),
  ...{ bench: 'gateway', problem: 'it took longer' },
  document: { ...run(true).document!, isPartial: true },
};
const silent: BenchRun = { bench: 'native', seconds: 9, document: null, problem: 'it took long' };

describe('the report of all benches', () => {
  const rows: readonly [string, readonly BenchRun[], boolean, RegExp][] = [
    ['is met when every goal is', [run(true)], true, /1 goals: 1 met, 0 missed; 0 of 1/],
    ['names what was missed', [run(true), run(false)], false, /\| server \| a \\\| b \| at most 2.00 ms \| 3.00 ms \| MISSED \|/], // prettier-ignore
    ['counts a bench without a report as a miss', [run(true), silent], false, /\| native \| its report \| \| it took long \| MISSED \|/], // prettier-ignore
    ['counts a part of a report as a miss, and has what there is', [partial], false, /\| gateway \| the whole of its report \| \| it took longer \| MISSED \|\n\| gateway \| a/], // prettier-ignore
  ];
  for (const [what, runs, isMet, expected] of rows)
    it(what, () => {
      const report = oneReport(runs, machine);
      assert.equal(report.isMet, isMet);
      assert.match(report.markdown, expected);
      const document = JSON.parse(report.json) as { isMet: boolean; benches: readonly unknown[] };
      assert.equal(document.isMet, isMet);
      assert.equal(document.benches.length, runs.length);
    });
});
