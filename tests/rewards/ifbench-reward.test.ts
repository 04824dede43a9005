import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { isRolloutError } from '../../src/core/errors.ts';
import { ifbenchReward } from '../../src/rewards/ifbench-reward.ts';
import { sentencesOf } from '../../src/rewards/instructions/text-parts.ts';

type Verdicts = readonly [id: string, args: Record<string, unknown>, signs: string];
type Split = readonly [text: string, sentences: readonly string[]];

const lines = readFileSync(new URL('../golden/rewards/instructions.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Verdicts | Split);
const splits = lines.filter((line): line is Split => line.length === 2);
const verdicts = lines.filter((line): line is Verdicts => line.length === 3);

/** The published check overlooks some of several blank lines. */
const isOwnWay = (id: string, text: string): boolean =>
  id === 'format:line_indent' && text.split('\n').filter((line) => line.trim() === '').length > 1;

function rewardOf(response: string | null, ids: unknown, kwargs?: unknown): number {
  const metadata = { instruction_id_list: ids, kwargs };
  return ifbenchReward({ prompt: '', response, label: null, tokens: [], metadata });
}

describe('instructions beside the published checks', () => {
  it(`${splits.length} texts have the same sentences`, () => {
    assert.ok(splits.length > 100);
    for (const [text, sentences] of splits) assert.deepEqual(sentencesOf(text), sentences, text);
  });

  it('each instruction is followed by some response and not by another', () => {
    const ids = Map.groupBy(verdicts, ([id]) => id);
    for (const [id, own] of ids) {
      const signs = own.map(([, , each]) => each).join('');
      assert.ok(signs.includes('1') && signs.includes('0'), id);
    }
    assert.equal(ids.size, 62);
  });

  for (const [id, args, signs] of verdicts)
    it(`${id} ${JSON.stringify(args)}`, () => {
      for (const [index, [text]] of splits.entries()) {
        if (signs[index] === '?' || isOwnWay(id, text)) continue;
        assert.equal(rewardOf(text, [id], [args]), Number(signs[index]), text);
      }
    });
});

describe('the reward ifbench', () => {
  const comma = 'punctuation:no_comma';
  const words = 'length_constraints:number_words';
  const three = { relation: 'at least', num_words: 3, absent: null };

  it('is 1 only where every instruction is followed', () => {
    assert.equal(rewardOf('one two three', [comma, ` ${words} `], [{}, three]), 1);
    assert.equal(rewardOf('one, two three', [comma, words], [{}, three]), 0);
    assert.equal(rewardOf('one two', [comma, words], [{}, three]), 0);
  });

  it('takes one object of arguments for all, and the last for those without', () => {
    assert.equal(rewardOf('one two three', [words, comma], three), 1);
    assert.equal(rewardOf('one two', [comma, words], [three]), 0);
  });

  it('counts sentences as it splits them', () => {
    const two = { relation: 'at least', num_sentences: 2 };
    const id = 'length_constraints:number_sentences';
    assert.equal(rewardOf('Dr. Fox ran 3.5 km.', [id], two), 0);
    assert.equal(rewardOf('Dr. Fox ran. He slept!', [id], two), 1);
  });

  it('is 0 without a response or without instructions', () => {
    assert.equal(rewardOf(null, [comma]), 0);
    assert.equal(rewardOf(' \n', [comma]), 0);
    for (const ids of [undefined, [], [null, ' '], 'x']) assert.equal(rewardOf('yes', ids), 0);
  });

  const refused: readonly (readonly [string, unknown, unknown, string])[] = [
    ['a language', ['language:response_language'], [{ language: 'de' }], 'instruction_id_list'],
    ['an unknown instruction', ['no:such'], [{}], 'instruction_id_list'],
    ['a missing number', [words], [{ relation: 'at least' }], 'kwargs.num_words'],
    ['another relation', [words], [{ relation: 'around', num_words: 3 }], 'kwargs.relation'],
    ['keywords that are none', ['keywords:existence'], [{ keywords: [1] }], 'kwargs.keywords'],
  ];
  for (const [title, ids, kwargs, field] of refused)
    it(`refuses ${title}, which is not 0`, () => {
      assert.throws(
        () => rewardOf('a text', ids, kwargs),
        (error) =>
          isRolloutError(error, 'REWARD_LABEL_INVALID') && error.field === `metadata.${field}`,
      );
    });
});
