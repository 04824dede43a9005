import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Agenda } from '../../../bench/simulation/agenda.ts';
import { Fifo } from '../../../bench/simulation/fifo.ts';
import { simulateFleet, type FleetWorld } from '../../../bench/simulation/fleet-model.ts';
import { always, exponential, logNormal, type Law } from '../../../bench/simulation/laws.ts';
import { Provider } from '../../../bench/simulation/provider.ts';
import { Station } from '../../../bench/simulation/station.ts';
import { seededRandom } from '../../support/random.ts';
import { closedThroughput, erlangWaitMs, pollaczekKhinchineWaitMs } from './queueing-laws.ts';

const fillMs = 50_000;
const measureMs = 20_000_000;

/** Share by which a measurement is off. */
function error(measured: number, expected: number): number {
  return Math.abs(measured - expected) / expected;
}

function isNear(measured: number, expected: number, share: number): void {
  assert.ok(error(measured, expected) < share, `${measured} is not near ${expected}`);
}

/** The mean wait before a station where customers arrive at random. */
function waitOf(servers: number, between: Law, service: Law): Station {
  const agenda = new Agenda();
  const station = new Station('station', agenda, servers);
  const arrive = (): void =>
    agenda.after(between(), () => {
      station.serve(service(), () => undefined);
      arrive();
    });
  arrive();
  agenda.runUntil(fillMs);
  station.restartCount();
  agenda.runUntil(fillMs + measureMs);
  return station;
}

/** Nothing takes time but what a test says. */
const free: FleetWorld = {
  ...{ hosts: 1, coresPerHost: 1, slotsPerHost: 1, engineCalls: Number.POSITIVE_INFINITY },
  costs: {
    ...{ frontEndMs: 0, queueMs: 0, queueTripMs: 0, workerThreadMs: 0, callThreadMs: 0 },
    ...{ hostMs: 0, turnHostMs: 0 },
  },
  ...{ turns: () => 1, modelCall: always(0), command: always(0), verify: always(0) },
  ...{ provider: null, demand: { live: 1 }, random: seededRandom(1) },
};

describe('the agenda of a simulation', () => {
  it('goes by time, and by the order of planning at one time', () => {
    const agenda = new Agenda();
    const random = seededRandom(5);
    const expected: { readonly at: number; readonly index: number }[] = [];
    const seen: number[] = [];
    for (let index = 0; index < 500; index += 1) {
      const at = Math.floor(random() * 40);
      expected.push({ at, index });
      agenda.after(at, () => {
        assert.equal(agenda.now, at);
        seen.push(index);
      });
    }
    agenda.runUntil(1_000);
    expected.sort((a, b) => a.at - b.at || a.index - b.index);
    assert.deepEqual(
      seen,
      expected.map(({ index }) => index),
    );
    assert.equal(agenda.now, 1_000);
    assert.throws(() => agenda.after(-1, () => undefined), RangeError);
    assert.throws(() => agenda.after(Number.NaN, () => undefined), RangeError);
  });

  it('leaves what comes later for later', () => {
    const agenda = new Agenda();
    let isDone = false;
    agenda.after(10, () => (isDone = true));
    agenda.runUntil(9);
    assert.equal(isDone, false);
    agenda.runUntil(10);
    assert.equal(isDone, true);
  });
});

it('a line gives back what was put in, in order, over many rounds', () => {
  const line = new Fifo<number>();
  let next = 0;
  let expected = 0;
  for (let round = 0; round < 5_000; round += 1) {
    for (let add = 0; add < 1 + (round % 3); add += 1) line.push((next += 1));
    assert.equal(line.shift(), (expected += 1));
    assert.equal(line.length, next - expected);
  }
});

describe('the station of the simulation', () => {
  const cases = [
    { servers: 1, load: 0.5, within: 0.05 },
    { servers: 1, load: 0.9, within: 0.12 },
    { servers: 2, load: 0.8, within: 0.08 },
    { servers: 8, load: 0.9, within: 0.1 },
    { servers: 64, load: 0.9, within: 0.1 },
  ];
  for (const { servers, load, within } of cases)
    it(`waits as M/M/${servers} does at a load of ${load}`, () => {
      const random = seededRandom(servers * 7_919);
      const service = 1 / (servers * 20);
      const arrivals = load / 20;
      const station = waitOf(
        servers,
        exponential(1 / arrivals, random),
        exponential(1 / service, random),
      );
      isNear(station.utilisation, load, 0.02);
      isNear(station.meanWaitMs, erlangWaitMs(servers, arrivals, service), within);
    });

  it('control: with one server more the law of eight is missed', () => {
    const random = seededRandom(809);
    const station = waitOf(9, exponential(20 / 0.9, random), exponential(160, random));
    assert.ok(error(station.meanWaitMs, erlangWaitMs(8, 0.9 / 20, 1 / 160)) > 0.3);
  });

  it('waits as M/D/1 and as M/G/1 with a long tail do', () => {
    const random = seededRandom(7);
    const between = exponential(25, random);
    const fixed = waitOf(1, between, always(20));
    isNear(
      fixed.meanWaitMs,
      pollaczekKhinchineWaitMs(1 / 25, { mean: 20, secondMoment: 400 }),
      0.05,
    );
    const variation = 1;
    const tailed = waitOf(1, between, logNormal(15, variation, random));
    const secondMoment = 15 * 15 * (1 + variation * variation);
    isNear(tailed.meanWaitMs, pollaczekKhinchineWaitMs(1 / 25, { mean: 15, secondMoment }), 0.08);
  });
});

describe('a provider of the simulation', () => {
  it('never makes more in a second than its quota, nor has more live', () => {
    const agenda = new Agenda();
    const madeAt: number[] = [];
    let live = 0;
    let most = 0;
    const provider = new Provider(agenda, {
      createsPerSec: 5,
      maxLive: 40,
      createMs: () => {
        madeAt.push(agenda.now);
        most = Math.max(most, (live += 1));
        return 2_000;
      },
    });
    for (let index = 0; index < 200; index += 1)
      provider.create(() =>
        agenda.after(9_000, () => {
          live -= 1;
          provider.destroy();
        }),
      );
    agenda.runUntil(600_000);
    assert.equal(madeAt.length, 200);
    assert.equal(most, 40);
    // A full bucket, and what flows in meanwhile.
    for (const [index, at] of madeAt.entries())
      assert.ok(
        madeAt.filter((other) => other >= at && other < at + 1_000).length <= 10,
        `${index}`,
      );
    const busy = madeAt.filter((at) => at < 8_000).length;
    assert.ok(busy >= 40, `${busy} in the first eight seconds: the quota is used`);
  });
});

describe('the fleet of the simulation', () => {
  it('waits for a place as M/M/c does, over hosts and their places', () => {
    const random = seededRandom(11);
    const world: FleetWorld = {
      ...free,
      ...{ hosts: 4, slotsPerHost: 4, modelCall: exponential(160, random) },
      demand: { between: exponential(11, random) },
    };
    const result = simulateFleet(world, { fillMs, measureMs: measureMs / 2 });
    isNear(result.meanWaitMs, erlangWaitMs(16, 1 / 11, 1 / 160), 0.1);
    isNear(result.meanRunning, 160 / 11, 0.02);
  });

  it('has the throughput of a closed line before one engine', () => {
    const random = seededRandom(13);
    const world: FleetWorld = {
      ...free,
      ...{ slotsPerHost: 30, engineCalls: 1, demand: { live: 30 } },
      ...{ modelCall: exponential(50, random), command: exponential(1_000, random) },
    };
    const result = simulateFleet(world, { fillMs, measureMs: measureMs / 10 });
    isNear(result.rolloutsPerMin / 60_000, closedThroughput(30, 1_000, 50), 0.02);
    assert.equal(result.stations[0]!.name, 'engine');
  });

  const bottlenecks: readonly [string, Partial<FleetWorld>][] = [
    ['front end', { costs: { ...free.costs, frontEndMs: 3 } }],
    ['queue', { costs: { ...free.costs, queueMs: 3 } }],
    ['threads of workers', { costs: { ...free.costs, callThreadMs: 12 } }],
    ['processors of hosts', { costs: { ...free.costs, turnHostMs: 12 }, modelCall: always(5) }],
    ['engine', { engineCalls: 30 }],
    ['provider', { provider: { createsPerSec: 100, maxLive: 1_000, createMs: always(1) } }],
  ];
  for (const [name, change] of bottlenecks)
    it(`says that it is the ${name} that is full, and goes no faster than that`, () => {
      const world: FleetWorld = {
        ...free,
        ...{ hosts: 4, slotsPerHost: 50, demand: { live: 200 } },
        ...{ modelCall: always(100), ...change },
      };
      const result = simulateFleet(world, { fillMs: 5_000, measureMs: 20_000 });
      assert.equal(result.stations[0]!.name, name);
      isNear(result.stations[0]!.utilisation, 1, 0.05);
      const limit = { 'threads of workers': 4 / 12, 'processors of hosts': 4 / 12 };
      const others = { 'front end': 1 / 3, queue: 1 / 3, engine: 0.3, provider: 0.1 };
      const expected = { ...limit, ...others }[name]!;
      isNear(result.rolloutsPerMin / 60_000, expected, 0.05);
    });

  it('is the same for the same seed, and not for another', () => {
    const rate = (seed: number): number => {
      const random = seededRandom(seed);
      const world = { ...free, random, modelCall: exponential(100, random) };
      return simulateFleet(world, { fillMs, measureMs: 50_000 }).rolloutsPerMin;
    };
    assert.equal(rate(3), rate(3));
    assert.notEqual(rate(3), rate(4));
  });
});
