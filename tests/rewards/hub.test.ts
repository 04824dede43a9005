import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { lastBoxed } from '../../src/rewards/boxed.ts';
import { equalAnswers } from '../../src/rewards/math/equal-answers.ts';
import { mathdForm } from '../../src/rewards/math/mathd-form.ts';
import { plainForm } from '../../src/rewards/math/plain-form.ts';
import { rewardRules } from '../../src/rewards/registry.ts';

type Case = readonly [
  kind: string,
  given: string,
  label: unknown,
  metadata: Record<string, unknown> | null,
  result: unknown,
];

const cases = readFileSync(new URL('../golden/rewards/hub.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Case);

const parts: Readonly<Record<string, (given: string, label: string) => unknown>> = {
  mathd: mathdForm,
  plain: plainForm,
  boxed: lastBoxed,
  equal: equalAnswers,
};

/** Where we do better, or where a text is no formula and only has to be compared with itself. */
const ownResults: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['plain \\frac{x+1}{y}', '(x+1)/y'],
  ['plain \\frac', '/'],
  ['plain \\frac{', '/'],
  ['plain \\sqrt', 'sqrt()'],
  ['equal x^0.5 sqrt(x)', true],
  ['equal sqrt(x) x^0.5', true],
]);

function resultOf([kind, given, label, metadata]: Case): unknown {
  const part = parts[kind];
  if (part) return part(given, label as string);
  const rule = rewardRules.get(kind);
  assert.ok(rule, kind);
  try {
    const sample = { prompt: '', response: given, label, tokens: [], metadata: metadata ?? {} };
    return rule(sample);
  } catch (error) {
    assert.match(String(error), /RolloutError: The label of a dapo reward is not a number/);
    return { error: 'ValueError' };
  }
}

/** Those that have no cases here: `ifbench` is compared instruction by instruction. */
const elsewhere = new Set(['deterministic_random', 'gemma_math', 'ifbench']);

describe('rewards beside those of Miles’ package', () => {
  for (const kind of [...Object.keys(parts), ...rewardRules.keys()]) {
    const own = cases.filter(([name]) => name === kind);
    if (elsewhere.has(kind)) continue;
    it(`${kind}: ${own.length} cases are equal`, () => {
      assert.ok(own.length > 10);
      for (const one of own) {
        const [, given, label, , result] = one;
        const name = [kind, given, ...(typeof label === 'string' ? [label] : [])].join(' ');
        const wanted = ownResults.has(name) ? ownResults.get(name) : result;
        assert.deepEqual(resultOf(one), wanted, name);
      }
    });
  }
});
