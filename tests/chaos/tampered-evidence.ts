/** Evidence of a good trial, spoilt in one way each: whoever judges must find every one. */
import type { Evidence } from './fault-verdict.ts';

export function tampered(good: Evidence): ReadonlyMap<string, Evidence> {
  const { result, kept } = good;
  const [slipway] = result.slipway === null ? [] : [result.slipway];
  if (slipway === undefined) throw new Error('the evidence has no record to spoil');
  const at = kept.findIndex(({ metrics }) => (metrics?.completion_token_ids ?? []).length > 0);
  const spoiltSteps = kept.map((step, index) =>
    index === at
      ? { ...step, metrics: { ...step.metrics, completion_token_ids: [1, 2, 3] } }
      : step,
  );
  return new Map<string, Evidence>([
    ['a reward that no verifier wrote', { ...good, rewardFile: null }],
    ['a reward that is not the written one', { ...good, rewardFile: '0.5\n' }],
    ['a reward that the answer does not deserve', { ...good, answer: 'no\n' }],
    ['an agent that ran on', { ...good, limitMs: -60_000 }],
    ['a sample to train on, of a model that never answered', { ...good, kept: [] }],
    ['ids that were never sampled', { ...good, kept: spoiltSteps }],
    [
      'a failure that nobody typed',
      {
        ...good,
        result: {
          ...result,
          exception_info: {
            exception_type: 'TypeError',
            exception_message: '',
            exception_traceback: '',
            occurred_at: null,
          },
          slipway: { ...slipway, failure: null },
        },
      },
    ],
  ]);
}
