/** A host takes work and cannot say so: it is delivered again, to another one, and then the first is heard all the same. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, it } from 'node:test';
import { everyonesOwn, SharedPlacement } from '../../chaos/fleet/no-claims.ts';
import { whyNoNats } from '../../support/nats/nats-cluster.ts';
import { until } from '../../support/until.ts';
import { FleetFixture, hasBegun, runningAt, submit, untilHosts } from './fleet-fixture.ts';

const settleMs = 300;
const flags = { '--queue-lease-sec': '60', '--max-concurrent': '1' };

/** Two hosts with a place each: `other` executes `r`, which `late` has taken before. */
async function lateWork(hasClaims: boolean) {
  await using made = new AsyncDisposableStack();
  const fleet = made.use(await FleetFixture.start());
  const front = await fleet.front(
    { '--queue-lease-sec': '60' },
    hasClaims ? {} : { makePlacement: (id, lease) => new SharedPlacement(id, lease) },
  );
  const broken = hasClaims ? {} : { claims: () => everyonesOwn };
  const doors = made.use(await fleet.nats.clientDoors());
  const late = await fleet.worker({ ...flags, '--queue': doors.urls.join(',') }, broken);
  await untilHosts(front, 1);
  // It asks for work.
  await delay(settleMs);
  doors.set('mute');
  await submit(front, 'r', { duration_ms: 60_000 });
  await delay(settleMs);
  const other = await fleet.worker(flags, broken);
  await until('it runs', () => hasBegun(front, 'r'));
  assert.equal(await runningAt(other), 1);
  const owned = made.move();
  return { front, late, other, doors, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

describe('work that a host takes in silence', { skip: whyNoNats, concurrency: true }, () => {
  it('is executed by the host that could claim it, and the other one takes what comes next', async () => {
    await using work = await lateWork(true);
    work.doors.set('open');
    await submit(work.front, 'next', { duration_ms: 60_000 });
    await until('the next runs', () => hasBegun(work.front, 'next'));
    assert.deepEqual([await runningAt(work.late), await runningAt(work.other)], [1, 1]);
  });

  it('control: runs at both without claims', async () => {
    await using work = await lateWork(false);
    work.doors.set('open');
    await until('the late one runs it too', async () => (await runningAt(work.late)) === 1);
    assert.equal(await runningAt(work.other), 1);
  });
});
