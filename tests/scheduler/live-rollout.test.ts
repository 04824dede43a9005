import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { LiveRollout } from '../../src/scheduler/live-rollout.ts';

function bench() {
  let released = 0;
  const rollout = new LiveRollout({
    ...{ id: 'r1', tenant: 'a', acceptedAt: new Date(0), acceptedMs: 0, waitMs: 1 },
    ...{ state: 'queued', attempt: 0, wantsSamples: false },
    reservation: { release: () => void (released += 1), giveBack: () => undefined },
  });
  return { rollout, released: () => released };
}

describe('a live rollout', () => {
  it('is ended by the first that claims it', async () => {
    const { rollout } = bench();
    const before = rollout.claimed();
    assert.equal(rollout.endedBy, null);
    assert.equal(rollout.claim('controller'), true);
    assert.equal(rollout.claim('backend'), false);
    assert.equal(rollout.claim('controller'), false);
    assert.equal(rollout.endedBy, 'controller');
    await before;
    await rollout.claimed();
  });

  it('gives its reservation back once, when it has ended and nobody works with it', () => {
    const { rollout, released } = bench();
    rollout.hold();
    assert.equal(rollout.letGo(), false, 'it has not ended');
    rollout.hold();
    rollout.hold();
    rollout.state = 'success';
    assert.equal(rollout.letGo(), false, 'somebody works with it');
    assert.equal(released(), 0);
    assert.equal(rollout.letGo(), true);
    assert.equal(released(), 1);
  });

  it('has its changes written one after the other, also after one that failed', async () => {
    const { rollout } = bench();
    const order: string[] = [];
    const slow = Promise.withResolvers<undefined>();
    const first = rollout.inTurn(async () => {
      await slow.promise;
      order.push('first');
      throw new Error('it failed');
    });
    const second = rollout.inTurn(() => {
      order.push('second');
      return Promise.resolve('done');
    });
    slow.resolve(undefined);
    await assert.rejects(first, /it failed/);
    assert.equal(await second, 'done');
    assert.deepEqual(order, ['first', 'second']);
  });
});
