import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { RequestProblem } from '../../../src/gateway/dialects/dialect.ts';
import { responsesDialect } from '../../../src/gateway/dialects/responses/responses-dialect.ts';
import { seededRandom } from '../../support/random.ts';
import { loadCases } from '../golden.ts';
import type { JsonObject, RequestCase, ResponsesCase } from './fixture-run.ts';

const bodies = (loadCases('responses') as readonly ResponsesCase[])
  .filter((each): each is RequestCase => each.direction === 'request')
  .map(({ body }) => body);

describe('a damaged request of the Responses API', () => {
  it('is read, or refused with a message and the field', () => {
    let refused = 0;
    for (let seed = 1; seed <= 2_000; seed += 1) {
      const body = damaged(bodies[seed % bodies.length], seededRandom(seed));
      try {
        responsesDialect.read(body);
      } catch (error) {
        assert.ok(error instanceof RequestProblem, `seed ${seed}: ${String(error)}`);
        assert.notEqual(error.problem.message, '');
        refused += 1;
      }
    }
    assert.ok(refused > 500, `${refused} were refused`);
  });

  for (const body of [null, undefined, 'text', 7, [], [{}], true])
    it(`is refused as a whole: ${JSON.stringify(body)}`, () => {
      assert.throws(() => responsesDialect.read(body), RequestProblem);
    });
});

describe('a request of the Responses API', () => {
  it('takes any name of a tool', () => {
    const body = { input: 'Go.', tools: [{ type: 'function', name: '__proto__', parameters: {} }] };
    const { conversation, extra } = responsesDialect.read(body);
    assert.equal(conversation.tools[0]?.name, '__proto__');
    assert.deepEqual(extra.echo['tools'], body.tools);
  });

  it('says whether it wants a stream', () => {
    assert.equal(responsesDialect.read({ input: 'Go.' }).conversation.isStreaming, false);
    assert.equal(
      responsesDialect.read({ input: 'Go.', stream: true }).conversation.isStreaming,
      true,
    );
  });

  it('names its model, or none', () => {
    assert.equal(responsesDialect.read({ input: 'Go.', model: 'm' }).conversation.model, 'm');
    assert.equal(responsesDialect.read({ input: 'Go.' }).conversation.model, null);
  });
});

/** One value somewhere in it is replaced, or one field left out. */
function damaged(value: unknown, random: () => number): unknown {
  if (typeof value !== 'object' || value === null || random() < 0.1) return junk(random);
  const keys = Object.keys(value);
  const key = keys[Math.floor(random() * keys.length)];
  if (key === undefined) return junk(random);
  if (Array.isArray(value))
    return value.map((each: unknown, index) =>
      String(index) === key ? damaged(each, random) : each,
    );
  const copy: Record<string, unknown> = { ...(value as JsonObject) };
  if (random() < 0.2) Reflect.deleteProperty(copy, key);
  else copy[key] = damaged(copy[key], random);
  return copy;
}

function junk(random: () => number): unknown {
  const values = [null, true, -1, 1e400, '', 'x', [], {}, [null], { type: 'x' }, [[]], '\ud800'];
  return values[Math.floor(random() * values.length)];
}
