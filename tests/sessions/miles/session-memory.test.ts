/** What sessions take of memory: each turn what is new in it, and all together no more than they may. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { result, said, SessionFixture, user } from './session-fixture.ts';

const longText = 'x'.repeat(10_000);
const tools = [{ type: 'function', function: { name: 'run', description: longText } }];

describe('sessions in memory', () => {
  it('hold of a turn what the turn before does not hold yet', async () => {
    await using fixture = await SessionFixture.start({ version: 'v2' });
    const id = await fixture.newSession();
    await fixture.chat(id, [user(longText)], { tools });
    await fixture.chat(id, [user(longText), said(), result('r')], { tools, temperature: 0.5 });
    const [first, second] = fixture.store.get(id).turns.nodes;
    assert.ok(first!.bytes > 40_000, String(first!.bytes));
    assert.ok(second!.bytes < 4_000, String(second!.bytes));
    assert.equal(second!.request.tools, first!.request.tools);
    const { records } = await fixture.view(id);
    const asked = records.map((record) => record['request'] as Record<string, unknown>);
    assert.deepEqual(
      asked.map((body) => [body['tools'], body['temperature']]),
      [
        [tools, undefined],
        [tools, 0.5],
      ],
    );
  });

  for (const version of ['v1', 'v2'] as const)
    it(`are refused beyond the bound: new ones first, then turns, until one is deleted: ${version}`, async () => {
      await using fixture = await SessionFixture.start({ version, maxBytes: 300_000 });
      const [one, other] = [await fixture.newSession(), await fixture.newSession()];
      assert.equal((await fixture.chat(one, [user(longText)], { tools })).status, 200);
      assert.equal((await fixture.chat(other, [user('a')])).status, 200);
      await fixture.chat(one, [user(longText), said(), result('y'.repeat(18_000))], { tools });
      const refused = await fixture.call('POST', '/sessions', { body: {} });
      assert.equal(refused.status, 503);
      assert.equal(refused.headers.get('x-slipway-error'), 'SESSION_MEMORY_FULL');
      assert.ok(Number(refused.headers.get('retry-after')) > 0);
      const again = await fixture.chat(other, [user('a'), said(), result('b')]);
      assert.equal(again.status, 200, 'a session at work is refused before the bound');
      const longer = [user('a'), said(), result('b'), said(), result(longText)];
      assert.equal((await fixture.chat(other, longer)).status, 200);
      const asked = fixture.engine.requests.length;
      const full = await fixture.chat(other, [...longer, said(), result('c')]);
      assert.deepEqual([full.status, fixture.engine.requests.length], [503, asked]);
      assert.equal((await fixture.call('DELETE', `/sessions/${one}`)).status, 204);
      assert.equal((await fixture.call('POST', '/sessions', { body: {} })).status, 200);
      const last = await fixture.chat(other, [...longer, said(), result('c')]);
      assert.equal(last.status, 200);
    });
});
