import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import {
  sampleRulesOf,
  trainsNothing,
  wantsSamples,
  type SampleRules,
  type TrainSettings,
} from '../../../src/wire/rollout/train-rules.ts';

const own: SampleRules = {
  ...{ trainsSummaries: false, picker: 'mine.ts:pick', maxTokens: 9 },
  ...{ routedExperts: false, indexerTopk: false },
};
const server: TrainSettings = { ...own, train: true };

const rows: readonly [title: string, metadata: Record<string, unknown> | null, server: TrainSettings, rules: unknown][] = [
  ['nothing, where the server wants none', null, trainsNothing, null],
  ['nothing, where the server wants samples', {}, server, own],
  ['null', { slipway_train: null }, server, own],
  ['no', { slipway_train: false }, server, null],
  ['yes', { slipway_train: true }, { ...server, train: false }, own],
  ['a part', { slipway_train: { train_summaries: true, max_tokens: null } }, server, { ...own, trainsSummaries: true, maxTokens: null }],
  ['an empty table', { slipway_train: {} }, { ...server, train: false }, own],
]; // prettier-ignore

for (const [title, metadata, settings, rules] of rows)
  test(`a request that says ${title} gets what it asks for`, () => {
    assert.deepEqual(sampleRulesOf(metadata, settings), rules);
    assert.equal(wantsSamples(metadata, settings), rules !== null);
  });

for (const given of ['true', 1, { picker: 'mine.ts:pick' }, { max_tokens: 0 }, { tain: true }])
  test(`a request that says ${JSON.stringify(given)} is refused, and counts as one that wants samples`, () => {
    const refused = (error: unknown): boolean =>
      isRolloutError(error, 'CONFIG_INVALID') && error.field === 'metadata.slipway_train';
    assert.throws(() => sampleRulesOf({ slipway_train: given }, trainsNothing), refused);
    assert.equal(wantsSamples({ slipway_train: given }, trainsNothing), true);
  });
