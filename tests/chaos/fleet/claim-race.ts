/**
 * Several claimers race for the same keys on NATS while its nodes are killed and connections break: what at-most-once across hosts rests on. A claim is a
 * compare-and-set; one whose answer was lost is read back. The control looks first and writes then, as a queue alone would have it.
 */
import { jetstream, JetStreamApiError } from '@nats-io/jetstream';
import { Kvm, type KV } from '@nats-io/kv';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { setTimeout as delay } from 'node:timers/promises';
import { NatsCluster, type ClientDoors } from '../../support/nats/nats-cluster.ts';
import { seededRandom } from '../../support/random.ts';

export interface ClaimRaceOptions {
  readonly nodes: 1 | 3;
  readonly claimers: number;
  readonly keys: number;
  /** `look-then-write`: the control. */
  readonly way: 'compare-and-set' | 'look-then-write';
  /** So often a node is killed, or the connections of one claimer break. */
  readonly faults: number;
  /** Between two of them, at most. */
  readonly restMs: number;
  readonly seed: number;
  readonly limitMs: number;
}

export interface ClaimRaceReport {
  readonly kills: number;
  readonly cuts: number;
  /** Claims that got no answer. */
  readonly unanswered: number;
  /** Claims that were won although their answer was lost. */
  readonly readBack: number;
  readonly problems: readonly string[];
}

const createMs = 20_000;
const requestMs = 500;
const retryMs = 20;
const deafMs = 20;
/** So many keys behind a fault the race is under way again. */
const recovered = 10;

export async function raceForClaims(options: ClaimRaceOptions): Promise<ClaimRaceReport> {
  await using cleanup = new AsyncDisposableStack();
  const nats = cleanup.use(await NatsCluster.start({ nodes: options.nodes }));
  const random = seededRandom(options.seed);
  const names = Array.from({ length: options.claimers }, (_, index) => `c${index + 1}`);
  const claimers: Claimer[] = [];
  for (const name of names)
    claimers.push(cleanup.use(await Claimer.start(name, cleanup.use(await nats.clientDoors()))));
  const deadline = performance.now() + options.limitMs;
  const winners = new Map<string, string[]>();
  let [kills, cuts, settled] = [0, 0, 0];
  const race = async (): Promise<void> => {
    for (; settled < options.keys; settled += 1) {
      const key = `k${settled}`;
      const won = await Promise.all(
        claimers.map(async (claimer) =>
          (await claimer.claim(key, { way: options.way, deadline })) ? [claimer.name] : [],
        ),
      );
      winners.set(key, won.flat());
    }
  };
  const hurt = async (): Promise<void> => {
    for (let fault = 0; fault < options.faults && settled < options.keys; fault += 1) {
      // What the last fault held up goes on first.
      const from = settled;
      while (settled < Math.min(from + recovered, options.keys)) await delay(1);
      await delay(options.restMs * random());
      if (fault % 2 === 0) {
        const node = nats.nodes[Math.floor(random() * options.nodes)];
        kills += 1;
        await node?.kill();
        await node?.start();
        await node?.ready();
      } else {
        cuts += 1;
        // The first to ask is the likeliest to have won.
        await claimers[0]?.breakConnections();
      }
    }
  };
  await Promise.all([race(), hurt()]);
  return {
    ...{ kills, cuts },
    unanswered: claimers.reduce((sum, { unanswered }) => sum + unanswered, 0),
    readBack: claimers.reduce((sum, { readBack }) => sum + readBack, 0),
    problems: [...winners]
      .filter(([, won]) => won.length !== 1)
      .map(([key, won]) => `${key}: won by ${won.join(' and ') || 'nobody'}`),
  };
}

class Claimer implements AsyncDisposable {
  readonly name: string;
  unanswered = 0;
  readBack = 0;
  readonly #doors: ClientDoors;
  readonly #connection: NatsConnection;
  readonly #claims: KV;

  static async start(name: string, doors: ClientDoors): Promise<Claimer> {
    const connection = await connect({
      servers: [...doors.urls],
      ...{ maxReconnectAttempts: -1, reconnectTimeWait: 50, reconnectJitter: 50 },
    });
    const bucket = (timeout: number): Kvm => new Kvm(jetstream(connection, { timeout }));
    // A cluster that has just come up takes long over its first streams.
    await bucket(createMs).create('claims', { replicas: doors.urls.length });
    const claims = await bucket(requestMs).open('claims');
    return new Claimer(name, { doors, connection, claims });
  }

  private constructor(
    name: string,
    of: { readonly doors: ClientDoors; readonly connection: NatsConnection; readonly claims: KV },
  ) {
    this.name = name;
    this.#doors = of.doors;
    this.#connection = of.connection;
    this.#claims = of.claims;
  }

  /** Asks until it is answered. */
  async claim(
    key: string,
    { way, deadline }: { readonly way: ClaimRaceOptions['way']; readonly deadline: number },
  ): Promise<boolean> {
    for (;;) {
      try {
        return way === 'look-then-write' ? await this.#look(key) : await this.#set(key);
      } catch (error) {
        if (performance.now() > deadline) throw error;
        this.unanswered += 1;
        await delay(retryMs);
      }
    }
  }

  /** What it asks arrives a little longer than the answers do. */
  async breakConnections(): Promise<void> {
    this.#doors.set('deaf');
    await delay(deafMs);
    this.#doors.set('reset');
    await delay(retryMs);
    this.#doors.set('open');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection.close();
  }

  async #set(key: string): Promise<boolean> {
    try {
      await this.#claims.create(key, this.name);
      return true;
    } catch (error) {
      const isRefused = error instanceof JetStreamApiError;
      const entry = await this.#claims.get(key);
      if (entry === null) throw error;
      if (!isRefused) this.unanswered += 1;
      const isOurs = entry.string() === this.name;
      if (isOurs) this.readBack += 1;
      return isOurs;
    }
  }

  async #look(key: string): Promise<boolean> {
    if ((await this.#claims.get(key)) !== null) return false;
    await this.#claims.put(key, this.name);
    return true;
  }
}
