/**
 * NATS for tests: one server, or a cluster of three on loopback. Nodes can be killed and started again with their data, cut off from each other,
 * and clients from nodes. Nodes reach each other through a door per pair and direction alone; clients go to a node's own port, or through doors of their own.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { natsServerPath } from '../../../scripts/setup/nats-server.js';
import { until } from '../until.ts';
import { freePorts, NatsNode } from './nats-node.ts';
import { TcpDoor, type DoorState } from './tcp-door.ts';

/** Why tests that need it are skipped; false = they run. */
export const whyNoNats: string | false =
  (await natsServerPath()) === null ? 'no nats-server here: npm run setup -- tests' : false;

export interface NatsOptions {
  /** Default: 1. */
  readonly nodes?: 1 | 3;
  /** Lines for the configuration of every node. */
  readonly settings?: string;
}

/** A way from one client to the nodes, to be shut for it alone. */
export interface ClientDoors extends AsyncDisposable {
  readonly urls: readonly string[];
  set(state: DoorState): void;
}

/** Nodes miss a leader after ten seconds and may have to vote more than once, for longer on a machine that does other things; asking them costs it something too. */
export const election = { limitMs: 180_000, everyMs: 50 } as const;

export class NatsCluster implements AsyncDisposable {
  readonly nodes: readonly NatsNode[];
  readonly #dir: string;
  /** By `from` and `to`. */
  readonly #routes: ReadonlyMap<string, TcpDoor>;

  static async start(options: NatsOptions = {}): Promise<NatsCluster> {
    const dir = await mkdtemp(path.join(os.tmpdir(), 'nats-'));
    const count = options.nodes ?? 1;
    const ports = await freePorts(3 * count);
    const indices = [...Array(count).keys()];
    const clusterPort = (index: number): number => ports[3 * index + 1] ?? 0;
    const routes = new Map<string, TcpDoor>();
    for (const from of indices)
      for (const to of indices)
        if (from !== to) routes.set(pair(from, to), await TcpDoor.open(clusterPort(to)));
    const nodes = indices.map(
      (index) =>
        new NatsNode({
          name: `n${index + 1}`,
          dir: path.join(dir, `n${index + 1}`),
          ports: {
            client: ports[3 * index] ?? 0,
            cluster: clusterPort(index),
            monitor: ports[3 * index + 2] ?? 0,
          },
          routes: indices.flatMap((to) => routes.get(pair(index, to))?.port ?? []),
          settings: options.settings ?? '',
        }),
    );
    const cluster = new NatsCluster(dir, nodes, routes);
    try {
      await Promise.all(nodes.map((node) => node.start()));
      await cluster.ready();
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
    return cluster;
  }

  private constructor(
    dir: string,
    nodes: readonly NatsNode[],
    routes: ReadonlyMap<string, TcpDoor>,
  ) {
    this.#dir = dir;
    this.nodes = nodes;
    this.#routes = routes;
  }

  /** Of every node's own port. */
  get urls(): readonly string[] {
    return this.nodes.map(({ url }) => url);
  }

  /** As one setting. */
  get url(): string {
    return this.urls.join(',');
  }

  /** Until every node that is up serves, and those of a cluster agree on a leader. */
  async ready(): Promise<void> {
    const up = this.nodes.filter(({ isUp }) => isUp);
    await Promise.all(up.map((node) => node.ready()));
    await this.agreed();
  }

  /** Until nodes agree on a leader, whether they have caught up with everything or not: one that was cut off may miss what was of a moment for ever. */
  async agreed(): Promise<void> {
    const up = this.nodes.filter(({ isUp }) => isUp);
    if (this.nodes.length === 1) return;
    await until(
      'one leader for all nodes',
      async () => {
        const leaders = new Set(await Promise.all(up.map((node) => node.metaLeader())));
        return leaders.size === 1 && !leaders.has(null);
      },
      election,
    );
  }

  /** Cuts a node off from the others, both ways, or joins it again. Clients still reach it. */
  isolate(index: number, state: DoorState): void {
    for (const other of this.nodes.keys()) {
      if (other === index) continue;
      this.#routes.get(pair(index, other))?.set(state);
      this.#routes.get(pair(other, index))?.set(state);
    }
  }

  async clientDoors(): Promise<ClientDoors> {
    const doors = await Promise.all(this.nodes.map(({ ports }) => TcpDoor.open(ports.client)));
    return {
      urls: doors.map(({ port }) => `nats://127.0.0.1:${port}`),
      set: (state) => doors.forEach((door) => door.set(state)),
      async [Symbol.asyncDispose]() {
        await Promise.all(doors.map((door) => door[Symbol.asyncDispose]()));
      },
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.nodes.map((node) => node[Symbol.asyncDispose]()));
    await Promise.all([...this.#routes.values()].map((door) => door[Symbol.asyncDispose]()));
    await rm(this.#dir, { recursive: true, force: true, maxRetries: 5 });
  }
}

function pair(from: number, to: number): string {
  return `${from}→${to}`;
}
