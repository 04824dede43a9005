import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Admission, type Reservation } from '../../src/scheduler/admission.ts';
import { ManualClock } from '../fakes/manual-clock.ts';
import { seededRandom } from '../support/random.ts';

const weights = new Map([
  ['a', 1],
  ['b', 1],
  ['c', 2],
]);

function admission(maxConcurrent: number, maxQueueDepth: number) {
  const clock = new ManualClock();
  const weightOf = (tenant: string): number => weights.get(tenant) ?? 1;
  return { clock, doors: new Admission({ maxConcurrent, maxQueueDepth }, { weightOf, clock }) };
}

describe('admission', () => {
  it('counts what it gave away, and gives nothing beyond its limit', () => {
    const { doors } = admission(1, 1);
    const first = doors.tryReserve('a');
    assert.ok(first && doors.tryReserve('a'));
    assert.equal(doors.tryReserve('a'), null);
    first.release();
    assert.ok(doors.tryReserve('a'));
    assert.equal(doors.inFlight, 2);
  });

  it('takes a second end of a reservation for a defect', () => {
    const { doors } = admission(1, 1);
    const place = doors.tryReserve('a');
    place?.release();
    assert.throws(() => place?.release(), TypeError);
    assert.throws(() => place?.giveBack(), TypeError);
    assert.equal(doors.inFlight, 0);
  });

  it('lets one tenant have everything while nobody else asks', () => {
    const { doors } = admission(4, 4);
    for (let at = 0; at < 8; at += 1) assert.ok(doors.tryReserve('a'));
  });

  it('keeps free places for tenants that were sent away and are below their share', () => {
    const { doors } = admission(4, 4);
    const held = Array.from({ length: 8 }, () => doors.tryReserve('a')!);
    assert.equal(doors.tryReserve('b'), null);
    doors.sendAway('b');
    held[0]?.release();
    assert.equal(doors.tryReserve('a'), null, 'the place is kept');
    assert.ok(doors.tryReserve('b'));
    held[1]?.release();
    assert.ok(doors.tryReserve('a'), 'nobody else is awaited any more');
  });

  it('keeps nothing for those who do not come back', () => {
    const { doors, clock } = admission(2, 0);
    const held = [doors.tryReserve('a'), doors.tryReserve('a')];
    assert.equal(doors.tryReserve('b'), null);
    const seconds = doors.sendAway('b');
    held[0]?.release();
    clock.advance(seconds * 1000 + 1_000);
    assert.equal(doors.tryReserve('a'), null, 'it may be a little late');
    clock.advance(3_000);
    assert.ok(doors.tryReserve('a'));
  });

  it('gives every tenant that asks at least one place, however many there are', () => {
    const { doors } = admission(1, 1);
    const held = [doors.tryReserve('a'), doors.tryReserve('a')];
    for (const tenant of ['b', 'c', 'd', 'e']) {
      assert.equal(doors.tryReserve(tenant), null);
      doors.sendAway(tenant);
    }
    held[0]?.release();
    assert.equal(doors.tryReserve('a'), null);
    assert.ok(doors.tryReserve('e'));
  });

  it('does not count for the drain what was given back unused', () => {
    const { doors, clock } = admission(1, 0);
    for (let at = 0; at < 10; at += 1) {
      doors.tryReserve('a')?.giveBack();
      clock.advance(10);
    }
    assert.equal(doors.sendAway('a'), 5);
  });

  /** A server that is full, and of which one place becomes free every `everyMs`. */
  const draining = (everyMs: number) => {
    const bench = admission(4, 16);
    const held = Array.from({ length: 20 }, () => bench.doors.tryReserve('a')!);
    for (let at = 0; at < 20; at += 1) {
      bench.clock.advance(everyMs);
      held.shift()?.release();
      held.push(bench.doors.tryReserve('a')!);
    }
    return { ...bench, held };
  };

  it('says five seconds without history, then the place in the line by the rate of the drain', () => {
    assert.equal(admission(2, 0).doors.sendAway('a'), 5);
    const { doors } = draining(500);
    const seconds = Array.from({ length: 200 }, () => doors.sendAway('a'));
    assert.equal(seconds[0], 1);
    assert.ok(seconds[9]! >= 5 && seconds[9]! <= 6, String(seconds[9]));
    assert.deepEqual(
      seconds,
      seconds.toSorted((x, y) => x - y),
    );
    // All places are taken by others in 10 s; nobody is sent away for more than twice that.
    assert.ok(seconds.at(-1)! >= 18 && seconds.at(-1)! <= 22, String(seconds.at(-1)));
    assert.ok(seconds.every((value) => Number.isInteger(value)));
  });

  it('never sends anybody away for more than a minute', () => {
    const { doors } = draining(30_000);
    const seconds = Array.from({ length: 20 }, () => doors.sendAway('a'));
    assert.deepEqual([Math.min(...seconds), Math.max(...seconds)], [30, 60]);
  });

  it('does not look further ahead than twice as far as it has seen', () => {
    const { doors, clock } = admission(1, 40);
    const held = Array.from({ length: 41 }, () => doors.tryReserve('a')!);
    // Two places in a second, as far as is known: eighty turns would take long.
    for (let at = 0; at < 2; at += 1) {
      clock.advance(4_000);
      held.shift()?.release();
      held.push(doors.tryReserve('a')!);
    }
    const seconds = Array.from({ length: 40 }, () => doors.sendAway('a'));
    assert.equal(Math.max(...seconds), 16);
  });

  it('says longer while nothing becomes free, and not longer for a time with nothing to do', () => {
    const { doors, clock, held } = draining(500);
    clock.advance(60_000);
    const standing = doors.sendAway('a');
    assert.ok(standing > 3, String(standing));
    for (const place of held) place.release();
    clock.advance(3_600_000);
    Array.from({ length: 20 }, () => doors.tryReserve('a'));
    assert.equal(doors.sendAway('a'), 1);
  });

  it('never has more out than the limit, nor another count than what is held, whatever happens', () => {
    for (let seed = 1; seed <= 20; seed += 1) {
      const { doors, clock } = admission(3, 5);
      const random = seededRandom(seed);
      const held: Reservation[] = [];
      for (let step = 0; step < 500; step += 1) {
        const tenant = ['a', 'b', 'c'][Math.floor(random() * 3)]!;
        if (random() < 0.6) {
          const place = doors.tryReserve(tenant);
          if (place === null) doors.sendAway(tenant);
          else held.push(place);
        } else held.splice(Math.floor(random() * held.length), 1)[0]?.release();
        clock.advance(random() * 300);
        const { in_flight, queue_depth, available } = doors.capacity(true);
        assert.equal(in_flight, held.length);
        assert.ok(held.length <= 8);
        assert.equal(queue_depth, Math.max(0, held.length - 3));
        assert.equal(available, 8 - held.length);
      }
    }
  });

  it('shares places by weight among tenants whose clients obey', () => {
    const { doors, clock } = admission(8, 24);
    const comeBack = new Map<string, number[]>([...weights.keys()].map((name) => [name, []]));
    const counts = new Map<string, number>();
    const held: Reservation[] = [];
    for (const waiting of comeBack.values()) for (let at = 0; at < 400; at += 1) waiting.push(0);
    for (let second = 0; second < 100; second += 1) {
      for (const [tenant, waiting] of comeBack) {
        const due = waiting.filter((at) => at <= second);
        comeBack.set(
          tenant,
          waiting.filter((at) => at > second),
        );
        due.forEach(() => {
          const place = doors.tryReserve(tenant);
          if (place === null) comeBack.get(tenant)?.push(second + doors.sendAway(tenant));
          else {
            held.push(place);
            if (second > 20 && second < 60) counts.set(tenant, (counts.get(tenant) ?? 0) + 1);
          }
        });
      }
      for (const place of held.splice(0, 8)) place.release();
      clock.advance(1_000);
    }
    const all = [...counts.values()].reduce((sum, count) => sum + count, 0);
    for (const [tenant, weight] of weights) {
      const share = (counts.get(tenant) ?? 0) / all;
      assert.ok(Math.abs(share - weight / 4) < 0.05, `${tenant}: ${share}`);
    }
  });
});
