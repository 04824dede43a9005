import assert from 'node:assert/strict';
import path from 'node:path';
import { describe, it } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import { matchers, type Message } from '../../../src/sessions/miles/message-matcher.ts';
import { openMatcher, openPicker } from '../../../src/sessions/miles/named-rules.ts';

const called = (given: unknown, more: object = {}): Message => ({
  role: 'assistant',
  content: '',
  tool_calls: [{ id: 'c1', type: 'function', function: { name: 'ls', arguments: given }, ...more }],
});
const deep = (levels: number): string => `{"a":${'['.repeat(levels)}${']'.repeat(levels)}}`;

/** By how much has to be forgiven: each matcher takes all that the ones before it take. */
const order = ['strict', 'loose_tool_call', 'role_content_only', 'none'] as const;

const rows: readonly {
  readonly title: string;
  readonly stored: Message;
  readonly given: Message;
  readonly first: (typeof order)[number];
}[] = [
  {
    title: 'equal ones',
    stored: { role: 'user', content: 'a' },
    given: { role: 'user', content: 'a' },
    first: 'strict',
  },
  {
    title: 'null, an empty text and no calls',
    stored: { role: 'assistant', content: null, tool_calls: [] },
    given: { role: 'assistant', content: '' },
    first: 'strict',
  },
  {
    title: 'names, ids and other keys',
    stored: { role: 'tool', content: 'a', name: 'x', tool_call_id: '1' },
    given: { role: 'tool', content: 'a', cache: {} },
    first: 'strict',
  },
  {
    title: 'an index in a call',
    stored: called('{}'),
    given: called('{}', { index: 3 }),
    first: 'strict',
  },
  {
    title: 'white space in front',
    stored: { role: 'user', content: 'a' },
    given: { role: 'user', content: ' a' },
    first: 'none',
  },
  {
    title: 'case',
    stored: { role: 'user', content: 'A' },
    given: { role: 'user', content: 'a' },
    first: 'none',
  },
  {
    title: 'a normal form of Unicode',
    stored: { role: 'user', content: '\u00e9' },
    given: { role: 'user', content: 'e\u0301' },
    first: 'none',
  },
  {
    title: 'an order of parts',
    stored: { role: 'user', content: [1, 2] },
    given: { role: 'user', content: [2, 1] },
    first: 'none',
  },
  {
    title: 'a role',
    stored: { role: 'user', content: 'a' },
    given: { role: 'tool', content: 'a' },
    first: 'none',
  },
  {
    title: 'lost reasoning',
    stored: { role: 'assistant', content: 'a', reasoning_content: 'r' },
    given: { role: 'assistant', content: 'a' },
    first: 'role_content_only',
  },
  {
    title: 'arguments printed anew',
    stored: called('{"a":1,"b":[1,2]}'),
    given: called('{ "b": [1, 2.0], "a": 1e0 }'),
    first: 'loose_tool_call',
  },
  {
    title: 'arguments as an object',
    stored: called('{"a":"x"}'),
    given: called({ a: 'x' }),
    first: 'loose_tool_call',
  },
  {
    title: 'no arguments in four spellings',
    stored: called('{}'),
    given: called(null),
    first: 'loose_tool_call',
  },
  {
    title: 'an empty text and {}',
    stored: called(''),
    given: called({}),
    first: 'loose_tool_call',
  },
  {
    title: 'numbers that no double holds',
    stored: called('{"a":1e999}'),
    given: called('{"a":10e998}'),
    first: 'loose_tool_call',
  },
  {
    title: 'numbers that a double would make equal',
    stored: called('{"a":9007199254740993}'),
    given: called('{"a":9007199254740992}'),
    first: 'role_content_only',
  },
  {
    title: 'zero and minus zero',
    stored: called('{"a":0.0}'),
    given: called('{"a":-0}'),
    first: 'loose_tool_call',
  },
  {
    title: 'true and 1',
    stored: called('{"a":true}'),
    given: called('{"a":1}'),
    first: 'role_content_only',
  },
  {
    title: '1 and "1"',
    stored: called('{"a":1}'),
    given: called('{"a":"1"}'),
    first: 'role_content_only',
  },
  {
    title: 'an order of a list in arguments',
    stored: called('{"a":[1,2]}'),
    given: called('{"a":[2,1]}'),
    first: 'role_content_only',
  },
  {
    title: 'white space only and {}',
    stored: called('{}'),
    given: called(' '),
    first: 'role_content_only',
  },
  {
    title: 'a key that stands twice',
    stored: called('{"a":1,"a":1}'),
    given: called('{"a":1}'),
    first: 'role_content_only',
  },
  {
    title: 'NaN',
    stored: called('{"a":NaN}'),
    given: called('{ "a":NaN}'),
    first: 'role_content_only',
  },
  {
    title: 'a list in place of an object',
    stored: called('[1]'),
    given: called('[ 1]'),
    first: 'role_content_only',
  },
  {
    title: 'arguments nested 2,000 deep',
    stored: called(deep(2_000)),
    given: called(` ${deep(2_000)}`),
    first: 'role_content_only',
  },
  {
    title: 'another id of a call',
    stored: called('{"a":1}', { id: 'c2' }),
    given: called('{"a": 1}'),
    first: 'role_content_only',
  },
  {
    title: 'an unknown field of a call',
    stored: called('{"a":1}', { x: 1 }),
    given: called('{"a": 1}'),
    first: 'role_content_only',
  },
  {
    title: 'absent arguments and null',
    stored: called(undefined),
    given: called(null),
    first: 'role_content_only',
  },
  {
    title: 'calls that are none',
    stored: { role: 'assistant', content: 'a', tool_calls: 'x' },
    given: { role: 'assistant', content: 'a', tool_calls: [7] },
    first: 'role_content_only',
  },
];

describe('the matchers of messages', () => {
  for (const { title, stored, given, first } of rows)
    it(`take ${title} as the same from ${first} on`, () => {
      // As they come over the wire.
      const [own, other] = [stored, given].map((one) => JSON.parse(JSON.stringify(one)) as Message);
      assert.ok(own !== undefined && other !== undefined);
      const before = structuredClone([own, other]);
      for (const [at, name] of order.slice(0, 3).entries()) {
        const expected = at >= order.indexOf(first);
        assert.equal(matchers[name]?.(own, other), expected, name);
        assert.equal(matchers[name](other, own), expected, `${name}, the other way`);
      }
      assert.deepEqual([own, other], before);
    });

  it('are found by their names, spelled as they are, or in a module', async () => {
    for (const name of order.slice(0, 3)) assert.equal(await openMatcher(name), matchers[name]);
    const module = path.join(import.meta.dirname, 'own-rules.ts');
    const own = await openMatcher(`${module}:sameRole`);
    assert.equal(own({ role: 'user', content: 'a' }, { role: 'user', content: 'b' }), true);
    for (const name of [
      'Strict',
      `${module}:none`,
      `${module}:later`,
      `${module}:number`,
      '/nowhere.ts:a',
    ])
      await assert.rejects(openMatcher(name), (error) => {
        assert.ok(isRolloutError(error, 'CONFIG_INVALID'));
        assert.equal(error.field, 'sessions.matcher');
        assert.match(error.remedy ?? '', /strict, loose_tool_call, role_content_only/);
        return true;
      });
    await assert.rejects(openPicker('keep_all'), /nothing is called "keep_all"/);
  });
});
