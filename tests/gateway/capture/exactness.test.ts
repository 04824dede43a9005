import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { loadVocabulary } from '../../../src/engines/server/vocabulary/load-vocabulary.ts';
import { runGatewayCorpus } from './exact-corpus.ts';
import { reEncodingCapture } from './re-encoding-capture.ts';

const size = { rollouts: 9, mostTurns: 4, seed: 7, concurrency: 4 } as const;
const options = { timeout: 120_000 };

test(
  'every call through the gateway is captured as the engine sampled it, in every dialect',
  options,
  async () => {
    const report = await runGatewayCorpus(size);
    assert.deepEqual(report.problems, []);
    const calls = Object.values(report.calls);
    assert.ok(calls.every((count) => count > 2), `${calls.join()} calls`); // prettier-ignore
    const all = calls.reduce((sum, count) => sum + count, 0);
    assert.ok(report.nonCanonical * 10 >= all, `${report.nonCanonical} of ${all} not canonical`);
    assert.ok(report.streamed > 0 && report.streamed < all);
  },
);

test('a capture that decodes and encodes again is found out', options, async () => {
  const vocabulary = await loadVocabulary(null);
  const report = await runGatewayCorpus({
    ...{ ...size, rollouts: 3 },
    spoil: (capture) => reEncodingCapture(capture, vocabulary),
  });
  assert.ok(report.differing > 0);
  assert.equal(report.differing, report.nonCanonical);
});

describe('where the gateway makes the ids of prompts', () => {
  test(
    'the engine is asked with them, and every turn goes on from those of the one before',
    options,
    async () => {
      const report = await runGatewayCorpus({ ...size, mode: 'tokens' });
      assert.deepEqual(report.problems, []);
      const all = Object.values(report.calls).reduce((sum, count) => sum + count, 0);
      assert.ok(report.nonCanonical * 10 >= all, `${report.nonCanonical} of ${all} not canonical`);
      assert.equal(report.appended, all - size.rollouts);
    },
  );

  test('a session that encodes its history again in every turn is found out', options, async () => {
    const some = { ...size, rollouts: 3 };
    const report = await runGatewayCorpus({ ...some, mode: 'tokens', matches: () => false });
    const all = Object.values(report.calls).reduce((sum, count) => sum + count, 0);
    assert.ok(report.appended < all - some.rollouts, `${report.appended} of ${all} go on`);
  });
});
