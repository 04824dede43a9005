import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { classifyEnd } from '../../../src/app/eval/classify-end.ts';
import { EvalItems } from '../../../src/app/eval/eval-items.ts';
import { evalMetrics } from '../../../src/app/eval/eval-metrics.ts';
import type { RolloutEnd } from '../../../src/callbacks/callback-rendezvous.ts';

const success = (reward: number | null, more: object = {}): object => ({
  status: 'success',
  sample: { reward, remove_sample: false, ...more },
});

describe('the end of a rollout', () => {
  const rows: readonly (readonly [
    what: string,
    end: Omit<RolloutEnd, 'rolloutId'>,
    status: string,
    errorType: string | null,
  ])[] = [
    [
      'no callback',
      { by: 'timeout', completion: null, grader: null },
      'failed',
      'callback_timeout',
    ],
    ['a completion alone', { by: 'timeout', completion: { status: 'success' }, grader: null }, 'failed', 'missing_grader_callback'], // prettier-ignore
    ['a failure with a category', { by: 'callback', completion: null, grader: { status: 'failure', err_category: 'timeout' } }, 'failed', 'timeout'], // prettier-ignore
    ['a failure without one', { by: 'callback', completion: null, grader: { status: 'failure' } }, 'failed', 'grader_failed'], // prettier-ignore
    ['a failure whose sample is removed', { by: 'callback', completion: null, grader: { status: 'failure', sample: { remove_sample: true } } }, 'failed', 'grader_failed'], // prettier-ignore
    ['a removed sample', { by: 'callback', completion: null, grader: { ...success(1, { remove_sample: true }) } }, 'skipped', null], // prettier-ignore
    [
      'a reward',
      { by: 'callback', completion: null, grader: { ...success(0.5) } },
      'success',
      null,
    ],
  ];
  for (const [what, end, status, errorType] of rows)
    it(`with ${what} is ${status}${errorType === null ? '' : ` by ${errorType}`}`, () => {
      const found = classifyEnd({ rolloutId: 'r', ...end });
      assert.deepEqual([found.status, found.error_type], [status, errorType]);
    });
});

interface Run {
  readonly reward?: number;
  readonly status?: 'success' | 'failed' | 'skipped';
  readonly cause?: string;
  readonly verdict?: Record<string, number>;
}

function itemsOf(rows: readonly (readonly (Run | null)[])[]): EvalItems {
  const items = new EvalItems(rows.length, rows[0]?.length ?? 0);
  for (const [row, runs] of rows.entries())
    for (const [run, one] of runs.entries()) {
      if (one === null) continue;
      const at = { row_index: row, run_index: run, rollout_id: 'id', at: '' };
      items.apply({ type: 'item:started', ...at });
      items.apply({
        ...{ type: 'item:ended', ...at, status: one.status ?? 'success' },
        ...{ reward: one.reward ?? null, error_type: null, err_message: null },
        ...{ cause: one.cause ?? null, duration_ms: 1 },
      });
      items.apply({
        ...{ type: 'item:kept', ...at, trajectory_filename: null, tokens: 10, cause: null },
        verdict: one.verdict ?? null,
      });
    }
  return items;
}

describe('the numbers of an evaluation', () => {
  const outage: Run = { status: 'failed', cause: 'ENVIRONMENT_LOST' };
  const late: Run = { status: 'failed', cause: 'AGENT_TIMEOUT' };
  const { all } = itemsOf([
    [{ reward: 1 }, { reward: 1 }],
    [{ reward: 0.5 }, { reward: 1 }],
    [outage, late],
    [{ status: 'skipped' }, { status: 'failed', cause: 'AGENT_TIMEOUT', verdict: { reward: 1 } }],
    [null, { status: 'failed' }],
  ]);
  const metrics = evalMetrics(all, { passThreshold: 1, repeats: 2 });

  it('count a failure without a reward as not passed, as Osmosis does, and no skipped run', () => {
    assert.deepEqual([metrics.total, metrics.pending, metrics.skipped], [10, 1, 1]);
    assert.deepEqual([metrics.scored, metrics.passed, metrics.pass_rate], [8, 3, 3 / 8]);
    assert.deepEqual(metrics.reward, {
      ...{ count: 4, mean: 0.875, std: Math.sqrt(0.1875 / 4), min: 0.5, max: 1 },
    });
    assert.equal(metrics.tokens, 90);
  });

  it('count no outage as a zero of the agent, and a verdict after its timeout as what it is', () => {
    const { slipway } = metrics;
    assert.deepEqual([slipway.scored, slipway.passed, slipway.uncounted], [6, 4, 2]);
    assert.equal(slipway.infrastructure_failures, 1);
    assert.deepEqual(metrics.failures, { ENVIRONMENT_LOST: 1, AGENT_TIMEOUT: 2, failed: 1 });
  });

  it('estimate pass@k for powers of two that every row has runs for', () => {
    const four = itemsOf([
      [{ reward: 1 }, { reward: 0 }, { reward: 0 }, { reward: 0 }],
      [{ reward: 1 }, { reward: 1 }, { reward: 0 }, { reward: 0 }],
    ]);
    const { pass_at_k: passes } = evalMetrics(four.all, { passThreshold: 1, repeats: 4 });
    assert.deepEqual(Object.keys(passes), ['1', '2', '4']);
    assert.deepEqual(
      [passes['1'], passes['2'], passes['4']].map((value) => value?.toFixed(6)),
      [(3 / 8).toFixed(6), ((1 / 2 + 5 / 6) / 2).toFixed(6), '1.000000'],
    );
    const once = itemsOf([[{ reward: 1 }]]);
    assert.deepEqual(evalMetrics(once.all, { passThreshold: 1, repeats: 1 }).pass_at_k, {});
  });

  it('do not count a given-up attempt', () => {
    const items = itemsOf([[{ reward: 1 }]]);
    const at = { row_index: 0, run_index: 0, at: '' };
    items.apply({ type: 'item:returned', ...at, rollout_id: 'id', reason: 'again' });
    items.apply({ type: 'item:started', ...at, rollout_id: 'second' });
    items.apply({
      ...{ type: 'item:ended', ...at, rollout_id: 'id', status: 'success', reward: 1 },
      ...{ error_type: null, err_message: null, cause: null, duration_ms: 1 },
    });
    assert.equal(items.all[0]?.state, 'running');
    assert.equal(evalMetrics(items.all, { passThreshold: 1, repeats: 1 }).pending, 1);
  });
});
