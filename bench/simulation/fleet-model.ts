/**
 * The world of a rollout service: controllers submit, a front end accepts and hands out what hosts have places for, a queue carries it there, sandboxes are
 * started on the hosts or by a provider, agents take turns between model calls and commands, a verifier runs, and the end goes back the same way.
 *
 * Left out, because it has no share in how much fits: deaths, tenants, callbacks that are sent again.
 */
import { Agenda } from './agenda.ts';
import { Fifo } from './fifo.ts';
import type { Law } from './laws.ts';
import { Provider, type ProviderLimits } from './provider.ts';
import { Station } from './station.ts';

/** Times in milliseconds of a processor, unless they are waits. */
export interface RolloutCosts {
  /** The front end's thread, for all of one life: accept, dispatch, end, callbacks. */
  readonly frontEndMs: number;
  /** What the queue is busy for with all messages of one life, and how long one is on its way. */
  readonly queueMs: number;
  readonly queueTripMs: number;
  /** The thread of a worker, for one life without its model calls, and for one model call. */
  readonly workerThreadMs: number;
  readonly callThreadMs: number;
  /** Processors of a host: sandbox, its start and end and the verifier; and one turn. */
  readonly hostMs: number;
  readonly turnHostMs: number;
}

export interface FleetWorld {
  readonly hosts: number;
  readonly coresPerHost: number;
  readonly slotsPerHost: number;
  readonly costs: RolloutCosts;
  /** Waits that load no processor of ours: one model call, one command, the verifier. */
  readonly turns: () => number;
  readonly modelCall: Law;
  readonly command: Law;
  readonly verify: Law;
  /** Calls that the engines carry out at once; Infinity = they are not what is looked at. */
  readonly engineCalls: number;
  /** null: sandboxes are the hosts' own. */
  readonly provider: ProviderLimits | null;
  /** So many rollouts are always under way or waiting; or they arrive with these times between them. */
  readonly demand: { readonly live: number } | { readonly between: Law };
  readonly random: () => number;
}

export interface FleetResult {
  readonly rolloutsPerMin: number;
  /** Rollouts in a place, with a sandbox, on average over the time that is measured. */
  readonly meanRunning: number;
  /** From accepted until a host has a place, and from there until its sandbox begins to be made. */
  readonly meanWaitMs: number;
  readonly meanLifeMs: number;
  readonly waiting: number;
  /** What is how busy, the busiest first. */
  readonly stations: readonly StationResult[];
}

export interface StationResult {
  readonly name: string;
  /** Of hosts: the mean. */
  readonly utilisation: number;
  readonly meanWaitMs: number;
}

interface Host {
  readonly processors: Station;
  readonly thread: Station;
}

/** Runs the world for a while to fill it, then for the time that is measured. */
export function simulateFleet(
  world: FleetWorld,
  times: { readonly fillMs: number; readonly measureMs: number },
): FleetResult {
  const fleet = new Fleet(world);
  return fleet.run(times);
}

class Fleet {
  readonly #world: FleetWorld;
  readonly #agenda = new Agenda();
  readonly #frontEnd: Station;
  readonly #queue: Station;
  readonly #engine: Station;
  readonly #provider: Provider | null;
  readonly #hosts: readonly Host[];
  readonly #line = new Fifo<{ readonly since: number; readonly turns: number }>();
  readonly #freeHosts: number[] = [];
  #ended = 0;
  #livedMs = 0;
  #begun = 0;
  #waitedMs = 0;
  #running = 0;
  /** Of rollouts in places, until the last change of their number. */
  #runningMs = 0;
  #changedAt = 0;

  constructor(world: FleetWorld) {
    this.#world = world;
    const station = (name: string, servers: number): Station =>
      new Station(name, this.#agenda, servers);
    this.#frontEnd = station('front end', 1);
    this.#queue = station('queue', 1);
    this.#engine = station('engine', world.engineCalls);
    this.#provider = world.provider === null ? null : new Provider(this.#agenda, world.provider);
    this.#hosts = Array.from({ length: world.hosts }, () => ({
      processors: station('processors of hosts', world.coresPerHost),
      thread: station('threads of workers', 1),
    }));
    // Places in turn, so that hosts fill evenly; what becomes free is the next to be filled.
    for (let slot = 0; slot < world.slotsPerHost; slot += 1)
      for (let host = 0; host < world.hosts; host += 1) this.#freeHosts.push(host);
    this.#freeHosts.reverse();
  }

  run({ fillMs, measureMs }: Parameters<typeof simulateFleet>[1]): FleetResult {
    const { demand } = this.#world;
    if ('live' in demand) this.#fillUp(demand.live, fillMs);
    else this.#arrive(demand.between);
    this.#agenda.runUntil(fillMs);
    this.#restartCount();
    this.#agenda.runUntil(fillMs + measureMs);
    return this.#result(measureMs);
  }

  /** Not all in the same moment, and not all of them at their beginning: as a service that has run for long. */
  #fillUp(live: number, overMs: number): void {
    const { random, turns } = this.#world;
    for (let index = 0; index < live; index += 1) {
      const left = Math.ceil(turns() * random());
      this.#agenda.after((overMs / 4) * random(), () => this.#submit(left));
    }
  }

  #arrive(between: Law): void {
    this.#agenda.after(between(), () => {
      this.#submit(this.#world.turns());
      this.#arrive(between);
    });
  }

  #submit(turns: number): void {
    const since = this.#agenda.now;
    this.#frontEnd.serve(this.#world.costs.frontEndMs / 2, () => {
      this.#line.push({ since, turns });
      this.#dispatch();
    });
  }

  #dispatch(): void {
    while (this.#line.length > 0) {
      const index = this.#freeHosts.pop();
      const host = index === undefined ? undefined : this.#hosts[index];
      const next = host === undefined ? undefined : this.#line.shift();
      if (index === undefined || host === undefined || next === undefined) return;
      this.#waitedMs += this.#agenda.now - next.since;
      this.#begun += 1;
      this.#carry(() => this.#start(host, index, next.turns));
    }
  }

  /** One way through the queue. */
  #carry(arrived: () => void): void {
    const { queueMs, queueTripMs } = this.#world.costs;
    this.#queue.serve(queueMs / 2, () => this.#agenda.after(queueTripMs, arrived));
  }

  #start(host: Host, index: number, turns: number): void {
    const { costs } = this.#world;
    const began = this.#agenda.now;
    const made = (): void => {
      this.#runs(1);
      host.thread.serve(costs.workerThreadMs / 2, () =>
        host.processors.serve(costs.hostMs / 2, () =>
          this.#takeTurns(host, turns, () => this.#finish(host, index, began)),
        ),
      );
    };
    if (this.#provider === null) made();
    else this.#provider.create(made);
  }

  #takeTurns(host: Host, left: number, done: () => void): void {
    const { costs, modelCall, command } = this.#world;
    if (left === 0) {
      done();
      return;
    }
    host.thread.serve(costs.callThreadMs, () =>
      this.#engine.serve(modelCall(), () =>
        host.processors.serve(costs.turnHostMs, () =>
          this.#agenda.after(command(), () => this.#takeTurns(host, left - 1, done)),
        ),
      ),
    );
  }

  #finish(host: Host, index: number, began: number): void {
    const { costs, verify, demand, turns } = this.#world;
    this.#agenda.after(verify(), () =>
      host.processors.serve(costs.hostMs / 2, () =>
        host.thread.serve(costs.workerThreadMs / 2, () => {
          this.#provider?.destroy();
          this.#ended += 1;
          this.#runs(-1);
          this.#livedMs += this.#agenda.now - began;
          this.#carry(() => {
            this.#freeHosts.push(index);
            this.#dispatch();
            this.#frontEnd.serve(costs.frontEndMs / 2, () => {
              if ('live' in demand) this.#submit(turns());
            });
          });
        }),
      ),
    );
  }

  #runs(more: number): void {
    this.#runningMs += this.#running * (this.#agenda.now - this.#changedAt);
    this.#changedAt = this.#agenda.now;
    this.#running += more;
  }

  #restartCount(): void {
    this.#runs(0);
    this.#runningMs = 0;
    this.#ended = this.#livedMs = this.#begun = this.#waitedMs = 0;
    for (const station of this.#stations()) station.restartCount();
  }

  #stations(): readonly (Station | Provider)[] {
    return [
      ...[this.#frontEnd, this.#queue, this.#engine],
      ...(this.#provider === null ? [] : [this.#provider]),
      ...this.#hosts.flatMap(({ processors, thread }) => [processors, thread]),
    ];
  }

  #result(measureMs: number): FleetResult {
    this.#runs(0);
    const mean = (name: string, stations: readonly (Station | Provider)[]): StationResult => ({
      name,
      utilisation: meanOf(stations.map(({ utilisation }) => utilisation)),
      meanWaitMs: meanOf(stations.map(({ meanWaitMs }) => meanWaitMs)),
    });
    const stations = [
      mean('front end', [this.#frontEnd]),
      mean('queue', [this.#queue]),
      mean('engine', [this.#engine]),
      ...(this.#provider === null ? [] : [mean('provider', [this.#provider])]),
      mean(
        'processors of hosts',
        this.#hosts.map(({ processors }) => processors),
      ),
      mean(
        'threads of workers',
        this.#hosts.map(({ thread }) => thread),
      ),
    ];
    return {
      rolloutsPerMin: (60_000 * this.#ended) / measureMs,
      meanRunning: this.#runningMs / measureMs,
      meanWaitMs: this.#begun === 0 ? 0 : this.#waitedMs / this.#begun,
      meanLifeMs: this.#ended === 0 ? 0 : this.#livedMs / this.#ended,
      waiting: this.#line.length,
      stations: stations.sort((a, b) => b.utilisation - a.utilisation),
    };
  }
}

function meanOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
}
