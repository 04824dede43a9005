import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Clients, type ClientIdentity } from '../../src/agent-server/clients.ts';
import { keepHeartbeats } from '../../src/agent-server/heartbeats.ts';
import { silentLogger } from '../../src/core/logger.ts';
import { ManualClock } from '../fakes/manual-clock.ts';

const operator = { tenant: null };
const one: ClientIdentity = { key: 'i1', heartbeatTarget: 'h:1', instanceId: 'i1' };
const two: ClientIdentity = { key: 'i2', heartbeatTarget: 'h:1', instanceId: 'i2' };

describe('clients', () => {
  it('are known while they have trials, and only as who they were', () => {
    const clients = new Clients<string>();
    assert.ok(clients.register(one, 'a', operator));
    assert.ok(clients.register(one, 'b', operator));
    assert.ok(!clients.register({ ...one, heartbeatTarget: 'h:2' }, 'c', operator));
    assert.ok(!clients.register({ ...one, instanceId: null }, 'c', operator));
    clients.discard(two, 'a', operator);
    clients.discard(one, 'a', operator);
    assert.equal(clients.all.length, 1);
    clients.discard(one, 'b', operator);
    assert.equal(clients.all.length, 0);
  });

  it('of one tenant are nothing to another', () => {
    const clients = new Clients<string>();
    assert.ok(clients.register(one, 'a', { tenant: 'blue' }));
    assert.ok(clients.register({ ...one, heartbeatTarget: 'x:1' }, 'b', { tenant: 'green' }));
    assert.equal(clients.visible({ tenant: 'blue' }).length, 1);
    assert.equal(clients.visible(operator).length, 2);
    assert.deepEqual(
      clients.take({ tenant: 'green' }, () => true).map(({ heartbeatTarget }) => heartbeatTarget),
      ['x:1'],
    );
    assert.equal(clients.visible(operator).length, 1);
  });
});

describe('heartbeats', () => {
  /** What each round answers, and which clients are flushed by then. */
  const rounds = async (
    answers: readonly (() => Promise<string | null>)[],
    identity: ClientIdentity,
  ): Promise<readonly number[]> => {
    const clock = new ManualClock();
    const clients = new Clients<string>();
    clients.register(identity, 'a', operator);
    clients.register(two, 'b', operator);
    const flushedAt: number[] = [];
    const stop = new AbortController();
    let round = 0;
    const probed: string[] = [];
    const done = keepHeartbeats(
      { intervalMs: 1_000, threshold: 3 },
      {
        ...{ clients, clock, logger: silentLogger },
        probe: async (target, { wantsInstance }) => {
          probed.push(target);
          if (target === two.heartbeatTarget && identity.heartbeatTarget !== target) return 'i2';
          assert.equal(wantsInstance, identity.instanceId !== null);
          return await (answers[round] ?? (async () => null))();
        },
        flush: (client) => {
          assert.equal(client.key, identity.key);
          clients.take(operator, (other) => other === client);
          flushedAt.push(round + 1);
        },
      },
      stop.signal,
    );
    for (; round < answers.length; round += 1) {
      while (clock.pauses.length === 0) await new Promise((resolve) => setImmediate(resolve));
      clock.advance(1_000);
      while (clock.pauses.length === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    assert.ok(probed.length > answers.length);
    assert.equal(clients.all.filter(({ key }) => key === two.key).length, 1);
    stop.abort(new Error('over'));
    await done;
    return flushedAt;
  };
  const good = async () => 'me';
  const other = async () => 'somebody else';
  const nobody = async () => null;
  const down = () => Promise.reject(new Error('refused'));
  const mine: ClientIdentity = { key: 'me', heartbeatTarget: 'm:1', instanceId: 'me' };
  const anybody: ClientIdentity = { key: 'm:1', heartbeatTarget: 'm:1', instanceId: null };

  const cases: readonly (readonly [
    string,
    ClientIdentity,
    readonly (() => Promise<string | null>)[],
    readonly number[],
  ])[] = [
    ['three failures flush', mine, [down, down, down, down], [3]],
    ['another instance in its place counts as a failure', mine, [other, nobody, down], [3]],
    ['an answer between them begins anew', mine, [down, down, good, down, down], []],
    ['any answer does for a client without an instance', anybody, [nobody, other, nobody], []],
    ['a client without an instance is flushed too', anybody, [down, down, down], [3]],
  ];
  for (const [title, identity, answers, flushedAt] of cases)
    it(`${title}, and nobody else`, async () => {
      assert.deepEqual(await rounds(answers, identity), flushedAt);
    });
});
