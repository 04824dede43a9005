import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isRolloutError } from '../../src/core/errors.ts';
import {
  collectorBegin,
  GroupSource,
  type CollectorPosition,
} from '../../src/collector/group-source.ts';
import { rows } from './scripted-rollouts.ts';

function source(
  count: number,
  options: {
    readonly shuffleSeed?: number;
    readonly epochs?: number;
    readonly from?: CollectorPosition;
  } = {},
): GroupSource {
  const { shuffleSeed = null, epochs = null, from = collectorBegin } = options;
  return new GroupSource(rows(count), { groupSize: 2, shuffleSeed, epochs, from });
}

const take = (from: GroupSource, count: number) =>
  Array.from({ length: count }, () => from.take()).map((seed) => seed?.row.rowIndex ?? null);

describe('the source of groups', () => {
  it('goes over several ends of the dataset in one go, and numbers groups and members through', () => {
    const groups = source(2);
    const seeds = Array.from({ length: 5 }, () => groups.take());
    assert.deepEqual(
      seeds.map((seed) => [
        seed?.groupIndex,
        seed?.firstIndex,
        seed?.row.rowIndex,
        seed?.row.epoch,
      ]),
      [
        [0, 0, 0, 0],
        [1, 2, 1, 0],
        [2, 4, 0, 1],
        [3, 6, 1, 1],
        [4, 8, 0, 2],
      ],
    );
  });

  it('holds every row once per epoch, in an order that follows from seed and epoch', () => {
    const one = source(50, { shuffleSeed: 7, epochs: 2 });
    const first = take(one, 50);
    const second = take(one, 50);
    assert.equal(one.take(), null);
    assert.deepEqual(first.toSorted(), take(source(50), 50).toSorted());
    assert.notDeepEqual(first, second);
    assert.deepEqual(take(source(50, { shuffleSeed: 7 }), 50), first);
    assert.notDeepEqual(take(source(50, { shuffleSeed: 8 }), 50), first);
  });

  it('serves what was given back before anything new, under its own number', () => {
    const groups = source(10);
    const first = groups.take();
    groups.take();
    assert.ok(first);
    groups.giveBack(first, []);
    assert.deepEqual(
      [groups.take(), groups.take()].map((seed) => [seed?.groupIndex, seed?.rounds]),
      [
        [0, 1],
        [2, 0],
      ],
    );
  });

  it('goes on from any position without losing or doubling a row', () => {
    for (let stop = 0; stop < 12; stop += 1) {
      const before = source(5, { shuffleSeed: 3, epochs: 3 });
      const settled: number[] = [];
      for (let at = 0; at < stop; at += 1) {
        const seed = before.take();
        assert.ok(seed);
        // Every third one is still at work when the process dies.
        if (at % 3 === 0) continue;
        before.settle(seed);
        settled.push(seed.row.epoch * 5 + seed.row.rowIndex);
      }
      const position = JSON.parse(JSON.stringify(before.position)) as CollectorPosition;
      const after = source(5, { shuffleSeed: 3, epochs: 3, from: position });
      for (let seed = after.take(); seed !== null; seed = after.take())
        settled.push(seed.row.epoch * 5 + seed.row.rowIndex);
      const all = Array.from({ length: 15 }, (_, at) => at);
      assert.deepEqual(
        settled.toSorted((a, b) => a - b),
        all,
      );
    }
  });

  const others: readonly (readonly [string, number, number])[] = [
    ['other rows', 6, 3],
    ['another order', 5, 4],
  ];
  for (const [title, count, shuffleSeed] of others)
    it(`refuses a position of ${title} by name, and takes its own`, () => {
      const before = source(5, { shuffleSeed: 3 });
      const taken = take(before, 2);
      const { position: from } = before;
      assert.throws(
        () => source(count, { shuffleSeed, from }),
        (error) => isRolloutError(error, 'CONFIG_INVALID') && error.field === 'position',
      );
      assert.deepEqual(take(source(5, { shuffleSeed: 3, from }), 2), taken);
      // One that does not say whose it is goes on by its numbers.
      assert.equal(
        take(source(count, { shuffleSeed, from: { ...from, fingerprint: null } }), 1).length,
        1,
      );
    });

  it('draws no row again that was given up, and ends when none is left', () => {
    const groups = source(2);
    const [first, second] = [groups.take(), groups.take()];
    assert.ok(first && second);
    groups.giveUp(first);
    assert.deepEqual(take(groups, 2), [1, 1]);
    groups.giveUp(second);
    assert.equal(groups.take(), null);
    assert.deepEqual(groups.position.givenUpRows, [0, 1]);
  });
});
