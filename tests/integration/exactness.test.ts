import assert from 'node:assert/strict';
import { test } from 'node:test';
import { loadVocabulary } from '../../src/engines/server/vocabulary/load-vocabulary.ts';
import { runCorpus } from '../chaos/exact-corpus.ts';
import { reEncoding } from '../chaos/re-encoding-client.ts';
import { whyNoRunc } from '../environments/local/local-bench.ts';

const size = { items: 10, singleTurnItems: 2, seed: 7, concurrency: 3 } as const;
const options = { skip: whyNoRunc() ?? false, timeout: 300_000 };

test(
  'every call of a trial is kept as the engine sampled it, ids one by one and log-probabilities bit for bit',
  options,
  async () => {
    const report = await runCorpus(size);
    assert.deepEqual(report.problems, []);
    assert.equal(report.trials, 12);
    assert.ok(report.calls > 60, `${report.calls} calls`);
    assert.ok(report.nonCanonical * 10 >= report.calls, `${report.nonCanonical} non-canonical`);
  },
);

test('a client that decodes and encodes again is found out', options, async () => {
  const vocabulary = await loadVocabulary(null);
  const report = await runCorpus({
    ...size,
    items: 3,
    singleTurnItems: 0,
    spoil: (open) => reEncoding(open, vocabulary),
  });
  assert.ok(report.differing > 0);
  assert.equal(report.differing, report.nonCanonical);
});
