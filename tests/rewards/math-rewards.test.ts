import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { equalAnswers } from '../../src/rewards/math/equal-answers.ts';
import { equalExpressions } from '../../src/rewards/math/equal-expressions.ts';
import { gemmaMathReward, mathReward } from '../../src/rewards/math-rewards.ts';

const same: readonly (readonly [string, string])[] = [
  ['x^2-1', '(x-1)(x+1)'],
  ['2x+2', '2(x+1)'],
  ['a/b*b', 'a'],
  ['sqrt(12)', '2sqrt(3)'],
  ['sqrt(-4)', '2*sqrt(-1)'],
  ['5!', '120.0'],
  ['0.1+0.2', '0.3'],
  ['2**-1', '1/2'],
  ['ln(4)', '2ln(2)'],
  ['pi/2', '0.5pi'],
  ['x**(1/3)', 'x**(2/6)'],
];

const different: readonly (readonly [string, string])[] = [
  ['sqrt(x^2)', 'x'],
  ['1/3', '0.333333333333'],
  ['x', 'y'],
  ['1/0', '1/0'],
  ['x(y)', 'xy'],
  ['abc', 'cab'],
  ['9^9^9', '9^9^9'],
  ['2^100', '2^100'],
  ['(1', '1'],
  ['5=5', '5'],
  ['(2000)!', '(2000)!'],
  ['sqrt', 'sqrt'],
];

describe('formulas', () => {
  for (const [left, right] of same)
    it(`finds ${left} and ${right} equal`, () => assert.ok(equalExpressions(left, right)));
  for (const [left, right] of different)
    it(`does not find ${left} and ${right} equal`, () => assert.ok(!equalExpressions(left, right)));

  it('ends at once on what would take long or overflow the stack', () => {
    for (const text of ['('.repeat(900), '{'.repeat(1_900), '-'.repeat(1_900), '((9^9)^9)^9'])
      assert.equal(equalAnswers(`\\${text}`, '1'), false);
    assert.equal(equalAnswers('{'.repeat(1e6), '1'), false);
  });
});

describe('rewards of boxed answers', () => {
  const sample = { prompt: '', tokens: [], metadata: {} };

  it('take a fraction over a sum for what it says', () => {
    const response = '\\boxed{\\frac{x+1}{2}}';
    assert.equal(mathReward({ ...sample, response, label: '(x+1)/2' }), 1);
    assert.equal(mathReward({ ...sample, response, label: 'x+1/2' }), 0);
  });

  it('take the label 0 for a label', () => {
    assert.equal(mathReward({ ...sample, response: '\\boxed{0}', label: 0 }), 1);
  });

  it('give nothing to a sample without response or label', () => {
    assert.equal(mathReward({ ...sample, response: null, label: '1' }), 0);
    assert.equal(mathReward({ ...sample, response: '\\boxed{1}', label: null }), 0);
  });

  it('look, for gemma, behind the last channel', () => {
    const scored = (response: string) => gemmaMathReward({ ...sample, response, label: '1' });
    assert.equal(scored('\\boxed{1}'), 1);
    assert.equal(scored('\\boxed{2}<channel|>\\boxed{1}'), 1);
    assert.equal(scored('\\boxed{1}<channel|>2'), 0);
  });
});
