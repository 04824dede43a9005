import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { isRolloutError, type ErrorCode } from '../../src/core/errors.ts';
import { readRewards, type RewardFiles, type Rewards } from '../../src/verifier/reward-file.ts';

const text = (content: string): RewardFiles => ({ json: null, text: content });
const json = (content: string): RewardFiles => ({ json: content, text: null });

const million = 1_000_000;
const nested = (open: string, close: string): string =>
  `${open.repeat(150_000)}1${close.repeat(150_000)}`;

const verdicts: readonly (readonly [string, RewardFiles, Rewards])[] = [
  ['a whole number', text('1'), { reward: 1 }],
  ['a fraction with white space around it', text(' \n0.25\n\n'), { reward: 0.25 }],
  ['a sign, a bare point and an exponent', text('-.5e1'), { reward: -5 }],
  ['digits grouped as Python groups them', text('1_000.5'), { reward: 1000.5 }],
  ['more than 1 and less than 0, unclamped', json('{"a": 7.5, "b": -3}'), { a: 7.5, b: -3 }],
  ['several named channels', json('{"reward": 1, "style": 0.5}'), { reward: 1, style: 0.5 }],
  ['booleans as numbers', json('{"ok": true, "fast": false}'), { ok: 1, fast: 0 }],
  ['numeric strings as numbers', json('{"ok": " 0.5 "}'), { ok: 0.5 }],
  ['no channels at all', json('{}'), {}],
  ['reward.json before reward.txt', { json: '{"reward": 0}', text: '1' }, { reward: 0 }],
];

const failures: readonly (readonly [string, RewardFiles, ErrorCode])[] = [
  ['neither file', { json: null, text: null }, 'REWARD_MISSING'],
  ['a text file of no bytes', text(''), 'REWARD_EMPTY'],
  [
    'a JSON file of no bytes, even beside a good text file',
    { json: '', text: '1' },
    'REWARD_EMPTY',
  ],
  ['white space only', text('\n'), 'REWARD_INVALID'],
  ['words', text('passed'), 'REWARD_INVALID'],
  ['two numbers', text('1 1'), 'REWARD_INVALID'],
  ['a hexadecimal number', text('0x10'), 'REWARD_INVALID'],
  ['a comma for the point', text('0,5'), 'REWARD_INVALID'],
  ['nan', text('nan'), 'REWARD_NOT_FINITE'],
  ['a signed infinity', text('-Infinity'), 'REWARD_NOT_FINITE'],
  ['inf', text('inf'), 'REWARD_NOT_FINITE'],
  ['a text number too large to be finite', text('1e999'), 'REWARD_NOT_FINITE'],
  ['NaN as Python writes it into JSON', json('{"reward": NaN}'), 'REWARD_NOT_FINITE'],
  ['Infinity as Python writes it', json('{"a": 1, "b": -Infinity}'), 'REWARD_NOT_FINITE'],
  ['a JSON number too large to be finite', json('{"reward": 1e999}'), 'REWARD_NOT_FINITE'],
  ['the word nan as a string', json('{"reward": "nan"}'), 'REWARD_NOT_FINITE'],
  ['broken JSON', json('{"reward": 1'), 'REWARD_INVALID'],
  ['JSON that only mentions NaN in a string', json('{"NaN": "x"}'), 'REWARD_INVALID'],
  ['a bare number', json('1'), 'REWARD_INVALID'],
  ['a list', json('[1]'), 'REWARD_INVALID'],
  ['null', json('null'), 'REWARD_INVALID'],
  ['a channel of null', json('{"reward": null}'), 'REWARD_INVALID'],
  ['a nested channel', json('{"reward": {"value": 1}}'), 'REWARD_INVALID'],
  ['an empty string', json('{"reward": ""}'), 'REWARD_INVALID'],
  [
    'a channel nested deeper than a stack',
    json(`{"a": ${nested('{"a":', '}')}}`),
    'REWARD_INVALID',
  ],
  ['a megabyte of digits and then a letter', text(`${'1'.repeat(million)}x`), 'REWARD_INVALID'],
  ['a megabyte of quotation marks', json('"\\'.repeat(million / 2)), 'REWARD_INVALID'],
];

describe('the reward files of a verifier', () => {
  for (const [title, files, expected] of verdicts)
    test(`may hold ${title}`, () => assert.deepEqual(readRewards(files), expected));

  for (const [title, files, code] of failures)
    test(`with ${title} are ${code}`, () => {
      assert.throws(
        () => readRewards(files),
        (error) => {
          assert.ok(isRolloutError(error, code), String(error));
          assert.equal(error.phase, 'verifier');
          assert.match(error.field ?? '', /^\/logs\/verifier\/reward\.(txt|json)$/);
          assert.ok(error.remedy !== null);
          return true;
        },
      );
    });

  test('are quoted only in part when they are long', () => {
    assert.throws(
      () => readRewards(text('x'.repeat(10_000))),
      (error) => error instanceof Error && error.message.length < 200,
    );
  });
});
