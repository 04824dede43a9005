import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { FairQueue, type Taken } from '../../src/scheduler/fair-queue.ts';
import { MemoryQueue } from '../../src/scheduler/memory/memory-queue.ts';

const weights: Readonly<Record<string, number>> = { a: 1, b: 1, c: 2, tiny: 0.01 };
const weightOf = (tenant: string): number => weights[tenant] ?? 1;

/** A queue whose time the test moves. */
class Bench {
  ms = 0;
  readonly queue = new FairQueue({ weightOf, monotonicMs: () => this.ms });

  fill(tenants: readonly string[], each: number): this {
    for (const tenant of tenants)
      for (let at = 0; at < each; at += 1) this.queue.push({ id: `${tenant}${at}`, tenant });
    return this;
  }

  /** Takes one after the other onto `places`; who is longest on one leaves when none is free, after `msOf` its tenant. */
  served(
    { places, takes }: { readonly places: number; readonly takes: number },
    msOf: (tenant: string) => number = () => 1_000,
  ): string[] {
    const running: { readonly taken: Taken; readonly endMs: number }[] = [];
    const order: string[] = [];
    while (order.length < takes) {
      if (running.length === places) {
        running.sort((a, b) => b.endMs - a.endMs);
        const first = running.pop()!;
        this.ms = first.endMs;
        this.queue.leave(first.taken);
      }
      const taken = this.queue.take();
      if (taken === null) break;
      order.push(taken.entry.id);
      running.push({ taken, endMs: this.ms + msOf(taken.entry.tenant) });
    }
    for (const { taken } of running) this.queue.leave(taken);
    return order;
  }
}

const shareOf = (order: readonly string[], tenant: string): number =>
  order.filter((id) => id.startsWith(tenant)).length / order.length;

describe('the fair queue', () => {
  it('serves one tenant in the order in which its rollouts came', () => {
    const order = new Bench().fill(['a'], 5).served({ places: 2, takes: 5 });
    assert.deepEqual(order, ['a0', 'a1', 'a2', 'a3', 'a4']);
  });

  for (const places of [1, 2, 3, 4, 5, 7, 8, 64])
    it(`shares ${places} places by weight`, () => {
      const order = new Bench().fill(['a', 'b', 'c'], 400).served({ places, takes: 400 });
      for (const [tenant, share] of [
        ['a', 0.25],
        ['b', 0.25],
        ['c', 0.5],
      ] as const)
        assert.ok(
          Math.abs(shareOf(order, tenant) - share) < 0.02,
          `${tenant} ${shareOf(order, tenant)}`,
        );
    });

  it('shares places, not starts, when the rollouts of one tenant are long', () => {
    const bench = new Bench().fill(['a', 'b'], 4_000);
    const order = bench.served({ places: 10, takes: 4_000 }, (tenant) =>
      tenant === 'a' ? 9_000 : 1_000,
    );
    // Half of the time on places is nine times as many of the short ones.
    assert.ok(Math.abs(shareOf(order, 'a') - 0.1) < 0.02, String(shareOf(order, 'a')));
  });

  it('gives no more places to a tenant whose rollouts do not end', () => {
    const bench = new Bench().fill(['a', 'b'], 500);
    const running = Array.from({ length: 8 }, () => bench.queue.take()!);
    const ofA = running.filter(({ entry }) => entry.tenant === 'a');
    assert.equal(ofA.length, 4);
    let short = running.filter(({ entry }) => entry.tenant === 'b');
    for (let round = 0; round < 50; round += 1) {
      bench.ms += 1_000;
      for (const taken of short) bench.queue.leave(taken);
      short = short.map(() => bench.queue.take()!);
      if (round > 3) assert.ok(short.filter(({ entry }) => entry.tenant === 'a').length <= 1);
      short = short.filter(({ entry }) => entry.tenant === 'b');
      if (short.length === 0) break;
    }
    assert.ok(bench.queue.counts('a').leased <= 5, String(bench.queue.counts('a').leased));
  });

  it('lets a tenant have all places while the others have nothing waiting', () => {
    assert.equal(new Bench().fill(['a'], 10).served({ places: 4, takes: 10 }).length, 10);
  });

  it('saves nothing up for a tenant that was away', () => {
    const bench = new Bench().fill(['a'], 300);
    bench.served({ places: 1, takes: 100 });
    bench.fill(['b'], 100);
    const order = bench.served({ places: 1, takes: 100 });
    assert.ok(Math.abs(shareOf(order, 'b') - 0.5) < 0.03, String(shareOf(order, 'b')));
  });

  it('starves nobody, however small the weight', () => {
    const order = new Bench().fill(['c', 'tiny'], 1000).served({ places: 1, takes: 1000 });
    const of = order.filter((id) => id.startsWith('tiny')).length;
    assert.ok(of >= 3 && of <= 8, String(of));
  });

  it('forgets what was removed, also in the middle, and says whether it was there', () => {
    const bench = new Bench().fill(['a'], 3);
    assert.equal(bench.queue.remove('a1'), true);
    assert.equal(bench.queue.remove('a1'), false);
    assert.equal(bench.queue.remove('nobody'), false);
    assert.deepEqual(bench.queue.counts(), { queued: 2, leased: 0 });
    assert.deepEqual(bench.served({ places: 5, takes: 5 }), ['a0', 'a2']);
  });
});

describe('a lease', () => {
  it('ends once: done frees the place, given back it is the first of its line again', async () => {
    const queue = new MemoryQueue({ weightOf, monotonicMs: () => 0 });
    await queue.put({ id: 'a0', tenant: 'a' });
    await queue.put({ id: 'a1', tenant: 'a' });
    const lease = (await queue.take())!;
    assert.equal(await queue.remove('a0'), false, 'it is taken');
    await lease.giveBack();
    assert.throws(() => void lease.done(), TypeError);
    assert.deepEqual(queue.counts('a'), { queued: 2, leased: 0 });
    const again = (await queue.take())!;
    assert.equal(again.entry.id, 'a0');
    await again.renew();
    await again.done();
    assert.deepEqual(queue.counts(), { queued: 1, leased: 0 });
  });
});
