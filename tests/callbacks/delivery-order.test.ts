import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { DeliveryOrder, type Ordered } from '../../src/callbacks/delivery-order.ts';

class Watched {
  readonly order = new DeliveryOrder<Ordered>();
  readonly going: number[] = [];
  readonly stalled: number[] = [];

  add(seq: number, url: string, rolloutId: string): Ordered {
    const item = { seq, url, rolloutId };
    this.order.add(item);
    void this.order.turn(item).then(() => this.going.push(seq));
    void this.order.stalled(item).then(() => this.stalled.push(seq));
    return item;
  }

  async sees(going: readonly number[], stalled: readonly number[] = []): Promise<void> {
    await new Promise(setImmediate);
    assert.deepEqual({ going: this.going, stalled: this.stalled }, { going, stalled });
  }
}

describe('the order of deliveries', () => {
  test('one URL gets one after the other, as they were created; other URLs do not wait', async () => {
    const watched = new Watched();
    const first = watched.add(1, 'u', 'a');
    const second = watched.add(3, 'u', 'c');
    watched.add(2, 'u', 'b');
    watched.add(4, 'v', 'd');
    await watched.sees([1, 4]);
    watched.order.remove(first);
    await watched.sees([1, 4, 2]);
    watched.order.remove(second);
    await watched.sees([1, 4, 2, 3]);
  });

  test('of a rollout the completion goes before the grader', async () => {
    const watched = new Watched();
    const completion = watched.add(1, 'c', 'a');
    watched.add(2, 'g', 'a');
    await watched.sees([1]);
    watched.order.remove(completion);
    await watched.sees([1, 2]);
  });

  test('the grader goes when the first round of the completion is over', async () => {
    const watched = new Watched();
    const completion = watched.add(1, 'c', 'a');
    watched.add(2, 'g', 'a');
    watched.order.stall(completion, { stepsAside: false });
    await watched.sees([1, 2], [1]);
  });

  test('a receiver that does not answer holds the others of its URL; their rollouts wait for nothing more', async () => {
    const watched = new Watched();
    const dead = watched.add(1, 'u', 'a');
    watched.add(2, 'u', 'b');
    watched.add(3, 'g', 'b');
    await watched.sees([1]);
    watched.order.stall(dead, { stepsAside: false });
    await watched.sees([1, 3], [1, 2]);
    watched.add(4, 'u', 'c');
    await watched.sees([1, 3], [1, 2, 4]);
  });

  test('when it answers again, order is as before', async () => {
    const watched = new Watched();
    const dead = watched.add(1, 'u', 'a');
    watched.add(2, 'u', 'b');
    watched.order.stall(dead, { stepsAside: false });
    watched.order.remove(dead);
    await watched.sees([1, 2], [1, 2]);
    watched.add(3, 'g', 'b');
    watched.add(4, 'u', 'd');
    await watched.sees([1, 2], [1, 2]);
  });

  test('what its receiver does not take steps aside', async () => {
    const watched = new Watched();
    const poison = watched.add(1, 'u', 'a');
    watched.add(2, 'u', 'b');
    watched.order.stall(poison, { stepsAside: true });
    await watched.sees([1, 2], [1]);
    watched.order.remove(poison);
    watched.add(3, 'u', 'c');
    await watched.sees([1, 2], [1]);
  });
});
