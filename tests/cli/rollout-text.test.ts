import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rolloutText } from '../../src/cli/rollout-text.ts';
import type { RolloutDetailDocument } from '../../src/wire/api/rollout.ts';
import { noSamples, samplesDocumentOf } from '../../src/wire/rollout/rollout-samples.ts';

const at = '2026-01-02T03:04:05.000Z';

function shown(samples: NonNullable<RolloutDetailDocument['outcome']>['samples']): string {
  const text = rolloutText(
    {
      ...{ id: 'r', tenant: 'default', state: 'success', stage: null, waiting_on: null },
      ...{ last_progress_at: null, attempt: 1, has_agent_begun: true, accepted_at: at },
      ...{ started_at: at, completed_at: at, ended_at: at, calls: null, is_tombstone: false },
      ...{ callbacks: [], receipts: [] },
      outcome: {
        ...{ status: 'success', reward: 1, err_message: null, err_category: null, stage: 'done' },
        ...{ cause: null, trainable: true, retryable: false, verdict: null, samples },
      },
    },
    [],
    new Date(at),
  );
  return text.split('\n').find((line) => line.startsWith('samples')) ?? '';
}

test('a rollout is shown with its samples, or with why it has none, or without a word of them', () => {
  const made = {
    ...noSamples('no-ids', ''),
    ...{ count: 3, trainedTokens: 40, labels: { opening: 1, edit: 2 }, notTrainable: null },
  };
  assert.match(shown(samplesDocumentOf(made)), /3 with 40 trained tokens: opening 1, edit 2$/);
  assert.match(
    shown(samplesDocumentOf(noSamples('no-ids', 'none said'))),
    /none: no-ids: none said$/,
  );
  assert.equal(shown(null), '');
});
