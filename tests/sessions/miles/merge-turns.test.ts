import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { mergeTurns, type SampledTurn } from '../../../src/sessions/miles/merge-turns.ts';
import { noReplay } from '../../../src/sessions/miles/replay.ts';

const decode = (ids: Int32Array): string => [...ids].map((id) => `${id} `).join('');

interface TurnOptions {
  readonly finish?: string;
  readonly logprobs?: readonly number[];
}

function turn(
  promptEnd: number,
  output: readonly number[],
  options: TurnOptions = {},
): SampledTurn {
  const { finish = 'stop', logprobs = output.map((id) => -id) } = options;
  return {
    ...{ seq: promptEnd, promptEnd, outputIds: Int32Array.from(output) },
    logprobs: Float64Array.from(logprobs),
    ...{ requestedS: 1, committedS: 2, replayStart: null },
    reply: {
      text: '{}',
      finishReason: finish,
      weightVersion: null,
      cachedTokens: 0,
      promptTokens: 0,
      latencyS: 0.5,
    },
  };
}

const merged = (turns: readonly SampledTurn[], snapshot: readonly number[], maxTrim = 1) =>
  mergeTurns(turns, {
    snapshot: Int32Array.from(snapshot),
    codec: { decode, maxTrim },
    ...{ maxTokens: null, replay: noReplay },
  });

describe('the turns of a session as one sample', () => {
  it('leave out what the template replaced at the end of a turn', () => {
    const snapshot = [1, 2, 3, 10, 11, 50, 51, 20, 98];
    const sample = merged([turn(3, [10, 11, 99]), turn(7, [20, 98])], snapshot);
    assert.ok(sample !== null);
    assert.deepEqual([...sample.tokens], snapshot);
    assert.deepEqual([...sample.lossMask], [1, 1, 0, 0, 1, 1]);
    assert.deepEqual([...sample.logprobs], [-10, -11, 0, 0, -20, -98]);
    assert.equal(sample.response, '10 11 50 51 20 98 ');
    assert.deepEqual(sample.completions, [
      { seq: 3, from: 0, to: 2 },
      { seq: 7, from: 4, to: 6 },
    ]);
    assert.deepEqual([sample.cachedTokens, sample.promptTokens, sample.weightVersions], [0, 0, []]);
  });

  it('keep the sign of a zero', () => {
    const sample = merged([turn(1, [5, 6], { logprobs: [-0, 0] })], [1, 5, 6]);
    assert.deepEqual(
      [...(sample?.logprobs ?? [])].map((value) => Object.is(value, -0)),
      [true, false],
    );
  });

  for (const { title, turns, snapshot, message } of [
    {
      title: 'more is replaced than may be',
      turns: [turn(1, [10, 11, 12]), turn(4, [20])],
      snapshot: [1, 10, 50, 51, 20],
      message: /turn 0: 2 trailing tokens are replaced, at most 1 may be/,
    },
    {
      title: 'the end of the last output is replaced',
      turns: [turn(1, [10, 11])],
      snapshot: [1, 10, 12],
      message: /turn 0: 1 trailing tokens are replaced, at most 0 may be/,
    },
    {
      title: 'tokens are left over',
      turns: [turn(1, [10])],
      snapshot: [1, 10, 11],
      message: /2 of 3 tokens of the session are accounted for/,
    },
    {
      title: 'no token stands between two turns',
      turns: [turn(1, [10]), turn(2, [20])],
      snapshot: [1, 10, 20],
      message: /turn 1: no token stands between/,
    },
    {
      title: 'a log-probability is missing',
      turns: [turn(1, [10], { logprobs: [] })],
      snapshot: [1, 10],
      message: /turn 0: 1 ids and 0 log-probabilities/,
    },
  ])
    it(`are refused where ${title}`, () => {
      assert.throws(() => merged(turns, snapshot), { code: 'SESSION_SAMPLES_FAILED', message });
    });
});
