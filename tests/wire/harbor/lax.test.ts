import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import { laxBoolean, laxInteger, laxNumber } from '../../../src/wire/harbor/lax.ts';
import { user } from '../../../src/wire/harbor/task/table.ts';

interface Recorded {
  readonly type: 'float' | 'int' | 'bool' | 'user';
  readonly input: unknown;
  readonly output?: unknown;
  readonly refused?: true;
  readonly nonFinite?: string;
}

// What Pydantic 2.14 makes of each input in lax mode; `user` is `Union[str, int]`.
const file = path.join(import.meta.dirname, '..', '..', 'golden', 'pydantic-lax.json');
const recorded = JSON.parse(await readFile(file, 'utf8')) as readonly Recorded[];
const schemas = { float: laxNumber, int: laxInteger, bool: laxBoolean, user };

describe('a value coerces as in Pydantic:', () => {
  for (const { type, input, output, refused, nonFinite } of recorded)
    it(`${type} ${JSON.stringify(input)}`, () => {
      const result = schemas[type].safeParse(input);
      // Deliberately stricter: a number that is not finite is refused, however it is spelt.
      if (refused === true || nonFinite !== undefined)
        assert.ok(!result.success, String(result.data));
      else assert.ok(result.data === output, JSON.stringify(result));
    });

  it('and a long text of digits that is no number is refused at once', () => {
    const result = laxNumber.safeParse(`${'1'.repeat(300_000)}x`); // minutes when tried in every way
    assert.equal(result.success, false);
  });

  it('and every kind is recorded', () => {
    assert.deepEqual(new Set(recorded.map(({ type }) => type)), new Set(Object.keys(schemas)));
  });
});
