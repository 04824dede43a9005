import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { samplesOfLines } from '../../../src/collector/server/samples-of-lines.ts';
import { masked, trainedLength } from '../../../src/collector/training-sample.ts';

const line = {
  ...{ sample: 0, label: 'main', reason: null, status: 'completed', is_cut: false, reward: 1 },
  ...{ weight: 1, prompt_length: 2, tokens: [1, 2, 3, 4, 5, 6], loss_mask: [1, 0, 1, 1] },
  log_probs: [-0.5, 0, -0.25, -0.125],
  calls: [
    {
      ...{ call: 0, begin: 0, output: 2, end: 3, trained: true, weight_version: '7' },
      has_log_probs: true,
    },
    {
      ...{ call: 1, begin: 3, output: 4, end: 6, trained: true, weight_version: '8' },
      has_log_probs: true,
    },
  ],
};
const lines = (...samples: readonly object[]): string =>
  [{ slipway_samples: 1 }, ...samples, { slipway_samples_end: 1 }]
    .map((each) => `${JSON.stringify(each)}\n`)
    .join('');

describe('samples of a rollout', () => {
  it('keep every number, and the version of each span', () => {
    const { samples, wasAborted } = samplesOfLines(lines(line));
    assert.equal(wasAborted, false);
    assert.deepEqual(samples, [
      {
        ...{ tokens: line.tokens, promptLength: 2, lossMask: line.loss_mask, weight: 1 },
        ...{ logprobs: line.log_probs, isTruncated: false },
        spans: [
          { begin: 2, end: 3, isTrained: true, weightVersion: '7' },
          { begin: 4, end: 6, isTrained: true, weightVersion: '8' },
        ],
      },
    ]);
    assert.equal(trainedLength(samples[0]!), 3);
    assert.equal(trainedLength(masked(samples[0]!)), 0);
  });

  it('tell what was cut short from what was cut off', () => {
    const cut = samplesOfLines(lines({ ...line, is_cut: true }, { ...line, status: 'aborted' }));
    assert.equal(cut.samples[0]?.isTruncated, true);
    assert.equal(cut.wasAborted, true);
  });
});
