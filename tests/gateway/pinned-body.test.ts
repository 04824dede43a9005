import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RequestProblem } from '../../src/gateway/dialects/dialect.ts';
import { pinnedBody } from '../../src/gateway/pinned-body.ts';
import type { SamplingPins } from '../../src/wire/rollout/route-rules.ts';
import { seededRandom } from '../support/random.ts';

interface Row {
  readonly what: string;
  readonly given: string;
  readonly pins?: SamplingPins;
  readonly sent: string;
  readonly replaced?: readonly string[];
}

const cold = { temperature: 0.5 };

const rows: readonly Row[] = [
  { what: 'an empty body', given: '{}', sent: '{"temperature":0.5}' },
  {
    what: 'a value at the end',
    given: '{"model":"m","temperature":1}',
    sent: '{"model":"m","temperature":0.5}',
    replaced: ['temperature'],
  },
  {
    what: 'the same value',
    given: '{"temperature":0.5,"model":"m"}',
    sent: '{"model":"m","temperature":0.5}',
  },
  {
    what: 'one name twice, once in escapes',
    given: '{"temperature":1,"a":1,"\\u0074emperature":2}',
    sent: '{"a":1,"temperature":0.5}',
    replaced: ['temperature'],
  },
  {
    what: 'the name further inside and in texts',
    given:
      '{"a":{"temperature":1},"b":["temperature",{"temperature":2}],"c":",\\"temperature\\":3"}',
    sent: '{"a":{"temperature":1},"b":["temperature",{"temperature":2}],"c":",\\"temperature\\":3","temperature":0.5}',
  },
  {
    what: 'numbers, spaces and escapes of all else, byte for byte',
    given:
      ' { "a" : 1.0 , "b":12345678901234567890,\n"c" : "\\u00e9é🙂\\\\" , "temperature" :\t1e0 } ',
    sent: '{"a" : 1.0,"b":12345678901234567890,"c" : "\\u00e9é🙂\\\\","temperature":0.5}',
    replaced: ['temperature'],
  },
  {
    what: 'null, which takes the field away',
    given: '{"stop":["x"],"model":"m"}',
    pins: { stop: null },
    sent: '{"model":"m"}',
    replaced: ['stop'],
  },
  {
    what: 'the limit under its newer name',
    given: '{"max_completion_tokens":9}',
    pins: { max_tokens: 7 },
    sent: '{"max_completion_tokens":7}',
    replaced: ['max_completion_tokens'],
  },
  {
    what: 'the limit under both names',
    given: '{"max_completion_tokens":9,"max_tokens":8}',
    pins: { max_tokens: 7 },
    sent: '{"max_tokens":7}',
    replaced: ['max_completion_tokens', 'max_tokens'],
  },
  {
    what: 'names that objects have by themselves',
    given: '{"__proto__":{"temperature":1},"constructor":2,"toString":3}',
    sent: '{"__proto__":{"temperature":1},"constructor":2,"toString":3,"temperature":0.5}',
  },
];

describe('a chat request with pinned parameters', () => {
  for (const { what, given, pins = cold, sent, replaced = [] } of rows)
    it(`has the pins, of ${what}`, () => {
      const pinned = pinnedBody(Buffer.from(given), pins);
      assert.equal(pinned.bytes.toString(), sent);
      assert.deepEqual(pinned.replaced, replaced);
    });

  it('keeps the bytes of a text that is no UTF-8', () => {
    const given = Buffer.concat([
      Buffer.from('{"a":"'),
      Buffer.from([0xc3, 0x28, 0xff]),
      Buffer.from('","temperature":1}'),
    ]);
    const { bytes } = pinnedBody(given, cold);
    assert.ok(bytes.includes(Buffer.from([0xc3, 0x28, 0xff])));
    assert.ok(!bytes.includes('"temperature":1}'));
  });

  it('is refused where the body is no JSON object', () => {
    for (const given of ['', '{', '[]', 'null', '"x"', '{"a":1}{"temperature":2}', '{"a":NaN}'])
      assert.throws(() => pinnedBody(Buffer.from(given), cold), RequestProblem, given);
  });

  it('says what was said before in every other field, whatever a client sends', () => {
    const random = seededRandom(7);
    const below = (limit: number): number => Math.floor(random() * limit);
    // Not '\\' as a name: beside '"' this version of Node reads one as the other.
    const names = ['temperature', 'stop', 'a', 'é', 'max_tokens', '"', 'b\\c', ',', '{'];
    const valueOf = (depth: number): unknown => {
      const kind = below(depth > 3 ? 4 : 6);
      if (kind === 0) return below(1000) / 8;
      if (kind === 1) return random() < 0.5;
      if (kind === 2) return null;
      if (kind === 3)
        return Array.from({ length: below(5) }, () => names[below(names.length)]).join('\n');
      if (kind === 4) return Array.from({ length: below(4) }, () => valueOf(depth + 1));
      return objectOf(depth + 1);
    };
    const objectOf = (depth: number): Record<string, unknown> =>
      Object.fromEntries(
        Array.from({ length: below(5) }, () => [names[below(names.length)] ?? '', valueOf(depth)]),
      );
    for (let run = 0; run < 500; run += 1) {
      const given = objectOf(0);
      const text = JSON.stringify(given, null, below(3));
      const sent: unknown = JSON.parse(pinnedBody(Buffer.from(text), cold).bytes.toString());
      assert.deepEqual(sent, { ...given, temperature: 0.5 }, text);
    }
  });
});
