import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  judgeFleet,
  readSights,
  seenAfter,
  shareOfBegins,
  type FleetCaps,
  type WorkSight,
} from './judge-fleet.ts';

const caps: FleetCaps = { global: 3, perHost: 2, tenants: { small: 1 } };
let seq = 0;

/** The lines of one agent from `from` to `to`. */
function work(from: number, to: number, as: Partial<WorkSight> = {}): readonly WorkSight[] {
  const own = { key: `k${(seq += 1)}`, tenant: 'big', host: 'w1', pid: 1, ...as };
  return [
    { ...own, what: 'begin', at: from },
    { ...own, what: 'beat', at: (from + to) / 2 },
    { ...own, what: 'end', at: to },
  ];
}

const sound: readonly WorkSight[] = [
  ...work(0, 10),
  ...work(2, 10),
  ...work(3, 10, { host: 'w2', tenant: 'small' }),
  // A place that becomes free is taken in the same moment.
  ...work(10, 20, { tenant: 'small' }),
  ...work(10, 20),
];

describe('the judge of a fleet', () => {
  it('finds nothing wrong where every cap is reached and none is passed', () => {
    const { problems, begun, mostGlobal, mostOnHost, mostOfTenant } = judgeFleet(sound, caps);
    assert.deepEqual(problems, []);
    assert.deepEqual(
      { begun, mostGlobal, mostOnHost, mostOfTenant },
      { begun: 5, mostGlobal: 3, mostOnHost: 2, mostOfTenant: { big: 2, small: 1 } },
    );
  });

  it('takes an agent that never said that it ended as gone when it was last seen', () => {
    const cut = work(4, 6, { host: 'w2' }).slice(0, 2);
    const { problems } = judgeFleet([...sound, ...cut], { ...caps, global: 4 });
    assert.deepEqual(problems, []);
    assert.equal(judgeFleet([...sound, ...cut], caps).mostGlobal, 4);
  });

  const rows: readonly [string, readonly WorkSight[], RegExp][] = [
    [
      'a second begin on another host',
      [...sound, ...work(30, 40, { key: 'x' }), ...work(60, 70, { key: 'x', host: 'w2' })],
      /x: begun 2 times \(w1\/1, w2\/1\)/,
    ],
    [
      'a second begin in the same process',
      [...sound, ...work(30, 40, { key: 'x' }), ...work(60, 70, { key: 'x' })],
      /x: begun 2 times/,
    ],
    ['one too many on a host', [...sound, ...work(12, 13)], /w1: 3 at once, allowed 2/],
    [
      'one too many in all',
      [...sound, ...work(5, 6, { host: 'w2' })],
      /all hosts: 4 at once, allowed 3/,
    ],
    [
      'one too many of a tenant',
      [...sound, ...work(12, 13, { host: 'w2', tenant: 'small' })],
      /tenant small: 2 at once, allowed 1/,
    ],
  ];
  for (const [what, sights, expected] of rows)
    it(`finds ${what}`, () => {
      assert.match(judgeFleet(sights, caps).problems.join('\n'), expected);
    });

  it('knows who was still at work after a moment, and how begins were shared', () => {
    const late = work(0, 40, { key: 'late' });
    assert.deepEqual(seenAfter([...sound, ...late], 25), ['late']);
    assert.deepEqual(seenAfter(sound, 25), []);
    assert.equal(shareOfBegins(sound, 'small', { from: 0, to: 100 }), 2 / 5);
    assert.equal(shareOfBegins(sound, 'small', { from: 0, to: 5 }), 1 / 3);
  });

  it('reads whole lines and leaves one that was cut', () => {
    const lines = sound.map((sight) => JSON.stringify(sight)).join('\n');
    assert.deepEqual(readSights(`${lines}\n{"key":"k`), sound);
  });
});
