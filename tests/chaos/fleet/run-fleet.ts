/**
 * A fleet under load while its parts die: workers, the front end and nodes of the queue are killed and started again, one worker, the front end or a node at a
 * time is cut off from the others. Controllers of two tenants go on submitting, cancelling and taking callbacks. At the end all that runs is cancelled at once.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { NatsCluster, type ClientDoors } from '../../support/nats/nats-cluster.ts';
import { seededRandom } from '../../support/random.ts';
import { until } from '../../support/until.ts';
import { LiveLoad, type PlannedWork } from '../live-load.ts';
import { judgeRollout, type RolloutEvidence } from '../rollout-evidence.ts';
import { FleetStack, hostName, type FleetPrograms } from './fleet-stack.ts';
import { judgeFleet, seenAfter, type FleetJudgement, type WorkSight } from './judge-fleet.ts';
import type { WitnessMetadata } from './witness-workflow.ts';

/** `hold-worker`: what a worker says arrives late. */
export type FleetFault =
  'worker' | 'front-end' | 'node' | 'cut-worker' | 'cut-front-end' | 'cut-node' | 'hold-worker';

export interface FleetOptions {
  readonly workers: number;
  readonly nodes: 1 | 3;
  readonly rollouts: number;
  /** Of each tenant, all the time. */
  readonly live: Readonly<Record<string, number>>;
  readonly slotsPerHost: number;
  readonly maxConcurrent: number;
  readonly longestMs: number;
  readonly seed: number;
  /** One after the other and again, until the rollouts are there; between two of them so long at most. */
  readonly faults: readonly FleetFault[];
  /** Default: as many as there is time for. */
  readonly mostFaults?: number;
  readonly restMs: number;
  /** How long what is cut off stays so. */
  readonly cutMs: number;
  readonly queueSettings?: string;
  readonly endLimitMs: number;
  readonly programs?: FleetPrograms;
  readonly onFault?: (what: string) => void;
}

export interface FleetReport {
  readonly rollouts: number;
  readonly cancelled: number;
  readonly interrupted: number;
  readonly resent: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly work: FleetJudgement;
  /** From the cancellation of all to the last that was seen of any agent; null = nothing ran. */
  readonly quietMs: number;
  /** So many were at work when all was cancelled. */
  readonly liveAtCancel: number;
  readonly problems: readonly string[];
}

const quietLimitMs = 5_000;
/** Who was cut off last comes back first. */
const placesLimitMs = 120_000;
const tenantWeights = { blue: 3, red: 1 } as const;

export async function runFleet(options: FleetOptions): Promise<FleetReport> {
  await using cleanup = new AsyncDisposableStack();
  const nats = cleanup.use(await NatsCluster.start({ nodes: options.nodes }));
  const doors = new Map<string, ClientDoors>();
  for (const process of ['front-end', ...Array.from(Array(options.workers).keys(), hostName)])
    doors.set(process, cleanup.use(await nats.clientDoors()));
  const stack = cleanup.use(
    await FleetStack.create({
      ...{ workers: options.workers, slotsPerHost: options.slotsPerHost, tenantWeights },
      maxConcurrent: options.maxConcurrent,
      maxQueueDepth: Object.values(options.live).reduce((sum, count) => sum + count, 0),
      queueUrls: (process) => doors.get(process)?.urls ?? [],
      queueSettings: options.queueSettings ?? '',
      ...(options.programs !== undefined && { programs: options.programs }),
    }),
  );
  await stack.start();
  const lost = new Map<string, number>();
  const loads = Object.entries(options.live).map(([tenant, live], index) =>
    cleanup.use(loadOf(tenant, live, { stack, options, index, lost })),
  );
  await Promise.all(loads.map((load) => load.start()));
  const chaos = new Chaos({ options, stack, nats, doors });
  const count = (): number => loads.reduce((sum, load) => sum + load.count, 0);
  await chaos.runUntil(() => count() >= options.rollouts);
  const evidence = (await Promise.all(loads.map((load) => load.finish(options.endLimitMs)))).flat();
  const quiet = await cancelAll(stack, options);
  const sights = await stack.sights();
  const work = judgeFleet(sights, {
    ...{ global: options.maxConcurrent, perHost: options.slotsPerHost, tenants: {} },
  });
  const problems = [
    ...evidence.flatMap(judgeRollout),
    ...work.problems,
    ...neverBegun(evidence, work.begun),
    ...seenAfterLoss(sights, lost),
    ...quiet.problems,
  ];
  return {
    rollouts: evidence.length,
    cancelled: evidence.filter(({ end }) => end === 'cancelled').length,
    interrupted: evidence.filter(({ callbacks }) =>
      callbacks.some(({ text }) => /ROLLOUT_INTERRUPTED|WORKER_LOST/.test(text)),
    ).length,
    resent: evidence.reduce(
      (sum, { callbacks }) =>
        sum + callbacks.length - new Set(callbacks.map(({ channel }) => channel)).size,
      0,
    ),
    faults: chaos.counts,
    work,
    quietMs: quiet.quietMs,
    liveAtCancel: quiet.live,
    problems: problems.length === 0 ? [] : [...problems, stack.errors()],
  };
}

/** Successes that no agent wrote of: the judge would have looked at nothing. */
function neverBegun(evidence: readonly RolloutEvidence[], begun: number): readonly string[] {
  const successes = evidence.filter(({ status }) => status === 'success').length;
  return successes > begun ? [`${successes} succeeded, ${begun} were begun`] : [];
}

/** A host that is cut off ends what it runs before anybody is told that it is lost. */
function seenAfterLoss(
  sights: readonly WorkSight[],
  lost: ReadonlyMap<string, number>,
): readonly string[] {
  const lastOf = new Map<string, number>();
  for (const { key, at } of sights) lastOf.set(key, Math.max(at, lastOf.get(key) ?? 0));
  return [...lost].flatMap(([key, at]) => {
    const lateMs = (lastOf.get(key) ?? 0) - at;
    return lateMs > 0 ? [`${key}: at work ${lateMs.toFixed(0)} ms after its host was lost`] : [];
  });
}

function loadOf(
  tenant: string,
  live: number,
  of: {
    readonly stack: FleetStack;
    readonly options: FleetOptions;
    readonly index: number;
    readonly lost: Map<string, number>;
  },
): LiveLoad {
  const plan = (random: () => number, key: string): PlannedWork => {
    const reward = Math.round(random() * 1_000) / 1_000;
    const metadata: WitnessMetadata = {
      ...{ key, tenant, reward },
      duration_ms: Math.floor(random() * of.options.longestMs),
    };
    return { metadata: { ...metadata }, reward };
  };
  return new LiveLoad({
    ...{ serverUrl: () => of.stack.url, live, prefix: `${tenant}::r`, plan },
    random: seededRandom(of.options.seed + 1 + of.index),
    onReceived: ({ rolloutId, text }) => {
      if (text.includes('WORKER_LOST') && !of.lost.has(rolloutId))
        of.lost.set(rolloutId, performance.timeOrigin + performance.now());
    },
  });
}

/** Fills every place with long work, cancels all of it in one request, and looks at when the last agent was seen. */
async function cancelAll(
  stack: FleetStack,
  options: FleetOptions,
): Promise<{
  readonly quietMs: number;
  readonly live: number;
  readonly problems: readonly string[];
}> {
  const ids = Array.from(
    { length: 2 * options.maxConcurrent },
    (_, index) => `blue::last-${index}`,
  );
  const submitted = await Promise.all(
    ids.map(async (id) => {
      const metadata: WitnessMetadata = { key: id, tenant: 'blue', duration_ms: 60_000, reward: 1 };
      const body = { rollout_id: id, initial_messages: [], metadata, ...deadEnds };
      const answer = await post(`${stack.url}/rollout`, body);
      return answer.status;
    }),
  );
  const refused = submitted.filter((status) => status !== 202);
  const expected = Math.min(options.maxConcurrent, ids.length - refused.length);
  const liveNow = async (): Promise<number> => {
    const begun = (await stack.sights()).filter(
      ({ key, what }) => what === 'begin' && key.includes('::last-'),
    );
    return begun.length;
  };
  await until('all places taken', async () => (await liveNow()) >= expected, {
    ...{ limitMs: placesLimitMs, everyMs: 50 },
  });
  const live = await liveNow();
  const at = performance.timeOrigin + performance.now();
  const answer = await post(`${stack.url}/rollout/cancel`, { all: true });
  await untilSilent(stack, at);
  const sights = await stack.sights();
  const last = lastSeen(sights, at);
  const late = seenAfter(sights, at + quietLimitMs);
  return {
    quietMs: last - at,
    live,
    problems: [
      ...(refused.length > 0 ? [`refused at the end: ${refused.join(', ')}`] : []),
      ...(answer.ok ? [] : [`the cancellation was answered with ${answer.status}`]),
      ...(late.length > 0
        ? [`at work ${quietLimitMs} ms after all was cancelled: ${late.join(', ')}`]
        : []),
    ],
  };
}

function lastSeen(sights: readonly WorkSight[], from: number): number {
  return sights.reduce((last, { at }) => Math.max(last, at), from);
}

/** Until no agent has written for a second, which is many times the pause between its lines; or until it is too late. */
async function untilSilent(stack: FleetStack, from: number): Promise<void> {
  const silenceMs = 1_000;
  const now = (): number => performance.timeOrigin + performance.now();
  let last = from;
  while (now() - last < silenceMs && now() - from < quietLimitMs + silenceMs) {
    await delay(100);
    last = lastSeen(await stack.sights(), last);
  }
}

/** Nobody listens, and nobody has to: what is cancelled sends no callback. */
const deadEnds = {
  chat_completions_url: 'http://127.0.0.1:9/v1',
  completion_callback_url: 'http://127.0.0.1:9/completion',
  grader_callback_url: 'http://127.0.0.1:9/grader',
};

async function post(url: string, body: unknown): Promise<Response> {
  return await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(30_000),
  });
}

interface ChaosParts {
  readonly options: FleetOptions;
  readonly stack: FleetStack;
  readonly nats: NatsCluster;
  readonly doors: ReadonlyMap<string, ClientDoors>;
}

class Chaos {
  readonly counts: Record<string, number> = {};
  readonly #parts: ChaosParts;
  readonly #random: () => number;

  constructor(parts: ChaosParts) {
    this.#parts = parts;
    this.#random = seededRandom(parts.options.seed);
  }

  async runUntil(isEnough: () => boolean): Promise<void> {
    const { faults, restMs, mostFaults = Infinity } = this.#parts.options;
    for (let turn = 0; !isEnough(); turn += 1) {
      await delay(restMs * (0.5 + this.#random() / 2));
      const fault = faults[turn % faults.length];
      if (fault === undefined || turn >= mostFaults || isEnough()) continue;
      this.counts[fault] = (this.counts[fault] ?? 0) + 1;
      await this.#do(fault);
    }
  }

  async #do(fault: FleetFault): Promise<void> {
    const { options, stack, nats, doors } = this.#parts;
    const worker = Math.floor(this.#random() * options.workers);
    const node = Math.floor(this.#random() * options.nodes);
    const tell = (what: string): void => options.onFault?.(what);
    switch (fault) {
      case 'worker':
        tell(`kills ${hostName(worker)}`);
        await stack.killWorker(worker);
        await stack.startWorker(worker);
        return;
      case 'front-end':
        tell('kills the front end');
        await stack.killFrontEnd();
        await stack.startFrontEnd();
        return;
      case 'node':
        tell(`kills ${nats.nodes[node]?.name}`);
        await nats.nodes[node]?.kill();
        await delay(this.#random() * options.cutMs);
        await nats.nodes[node]?.start();
        await (options.nodes === 1 ? nats.ready() : nats.agreed());
        return;
      case 'cut-worker':
      case 'cut-front-end':
      case 'hold-worker': {
        const process = fault === 'cut-front-end' ? 'front-end' : hostName(worker);
        const cut = this.#random() < 0.5 ? 'silent' : 'reset';
        const way = fault === 'hold-worker' ? 'mute' : cut;
        tell(`cuts ${process} off from the queue (${way})`);
        doors.get(process)?.set(way);
        await delay(options.cutMs);
        doors.get(process)?.set('open');
        return;
      }
      case 'cut-node':
        tell(`cuts ${nats.nodes[node]?.name} off from the other nodes`);
        nats.isolate(node, 'silent');
        await delay(options.cutMs);
        nats.isolate(node, 'open');
        await nats.agreed();
        return;
    }
  }
}
