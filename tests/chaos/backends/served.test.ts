import assert from 'node:assert/strict';
import { it } from 'node:test';
import { runPlanned, serve } from './served.ts';

it('finds rollouts whose end is not the promised one, and no others', async () => {
  await using served = await serve({ config: '[backend]\nkind = "null"\n', request: {} });
  const of = (id: string, options: Readonly<Record<string, unknown>>) => ({
    ...{ rollout_id: id, metadata: { null: options } },
  });
  const report = await runPlanned(served, [
    { ...of('right', { reward: 0.5 }), promised: 0.5 },
    { ...of('another-reward', { reward: 0.25 }), promised: 0.5 },
    { ...of('failed', { fail: 'RUNNER_FAILED' }), promised: 1 },
    { ...of('judged', {}), promised: 1, judge: () => ['it lacks something'] },
    { ...of('typed', { fail: 'RUNNER_FAILED' }), promised: { cause: 'RUNNER_FAILED' } },
    { ...of('another-type', { fail: 'AGENT_FAILED' }), promised: { cause: 'RUNNER_FAILED' } },
    { ...of('did-not-fail', {}), promised: { cause: 'RUNNER_FAILED' } },
  ]);
  const { problems, ...counts } = report;
  assert.deepEqual(counts, { rollouts: 4, right: 1, failing: 3, typed: 1 });
  assert.deepEqual(problems.map((problem) => problem.replace(/:.*/s, '')).sort(), [
    'another-reward',
    'another-type',
    'did-not-fail',
    'failed',
    'judged',
  ]);
});
