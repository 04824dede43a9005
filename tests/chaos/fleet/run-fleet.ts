/**
 * A fleet under load while its parts die: workers, the front end and nodes of the queue are killed and started again, one worker and one node at a time is cut
 * off from the others. Controllers of two tenants go on submitting, cancelling and taking callbacks. At the end all that runs is cancelled at once.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { NatsCluster, type ClientDoors } from '../../support/nats/nats-cluster.ts';
import { seededRandom } from '../../support/random.ts';
import { until } from '../../support/until.ts';
import { LiveLoad, type PlannedWork } from '../live-load.ts';
import { judgeRollout, type RolloutEvidence } from '../rollout-evidence.ts';
import { FleetStack, hostName } from './fleet-stack.ts';
import { judgeFleet, seenAfter, type FleetJudgement } from './judge-fleet.ts';
import type { WitnessMetadata } from './witness-workflow.ts';

export type FleetFault = 'worker' | 'front-end' | 'node' | 'cut-worker' | 'cut-node';

export interface FleetOptions {
  readonly workers: number;
  readonly nodes: 0 | 1 | 3;
  readonly rollouts: number;
  /** Of each tenant, all the time. */
  readonly live: Readonly<Record<string, number>>;
  readonly slotsPerHost: number;
  readonly maxConcurrent: number;
  readonly longestMs: number;
  readonly seed: number;
  /** One after the other and again, until the rollouts are there; between two of them so long at most. */
  readonly faults: readonly FleetFault[];
  readonly restMs: number;
  /** How long what is cut off stays so. */
  readonly cutMs: number;
  readonly queueSettings?: string;
  readonly endLimitMs: number;
  readonly workerProgram?: readonly string[];
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
const tenantWeights = { blue: 3, red: 1 } as const;

export async function runFleet(options: FleetOptions): Promise<FleetReport> {
  await using cleanup = new AsyncDisposableStack();
  const nats = options.nodes === 0 ? null : await NatsCluster.start({ nodes: options.nodes });
  if (nats !== null) cleanup.use(nats);
  const doors = new Map<string, ClientDoors>();
  for (const index of Array(options.workers).keys())
    if (nats !== null) doors.set(hostName(index), cleanup.use(await nats.clientDoors()));
  const stack = cleanup.use(
    await FleetStack.create({
      ...{ workers: options.workers, slotsPerHost: options.slotsPerHost, tenantWeights },
      maxConcurrent: options.maxConcurrent,
      maxQueueDepth: Object.values(options.live).reduce((sum, count) => sum + count, 0),
      queueUrls: (process) => doors.get(process)?.urls ?? nats?.urls ?? [],
      queueSettings: options.queueSettings ?? '',
      ...(options.workerProgram !== undefined && { workerProgram: options.workerProgram }),
    }),
  );
  await stack.start();
  const loads = Object.entries(options.live).map(([tenant, live], index) =>
    cleanup.use(loadOf(tenant, live, { stack, options, index })),
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

function loadOf(
  tenant: string,
  live: number,
  of: { readonly stack: FleetStack; readonly options: FleetOptions; readonly index: number },
): LiveLoad {
  let made = 0;
  const plan = (random: () => number): PlannedWork => {
    const reward = Math.round(random() * 1_000) / 1_000;
    const metadata: WitnessMetadata = {
      ...{ key: `${tenant}-${(made += 1)}`, tenant, reward },
      duration_ms: Math.floor(random() * of.options.longestMs),
    };
    return { metadata: { ...metadata }, reward };
  };
  return new LiveLoad({
    ...{ serverUrl: () => of.stack.url, live, prefix: `${tenant}::r`, plan },
    random: seededRandom(of.options.seed + 1 + of.index),
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
  await until('all places taken', async () => (await liveNow()) >= expected);
  const live = await liveNow();
  const at = performance.timeOrigin + performance.now();
  const answer = await post(`${stack.url}/rollout/cancel`, { all: true });
  await untilSilent(stack, at);
  const sights = await stack.sights();
  const last = Math.max(at, ...sights.map((sight) => sight.at));
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

/** Until no agent has written for a second, which is many times the pause between its lines; or until it is too late. */
async function untilSilent(stack: FleetStack, from: number): Promise<void> {
  const silenceMs = 1_000;
  const now = (): number => performance.timeOrigin + performance.now();
  let last = from;
  while (now() - last < silenceMs && now() - from < quietLimitMs + silenceMs) {
    await delay(100);
    last = Math.max(last, ...(await stack.sights()).map((sight) => sight.at));
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
  readonly nats: NatsCluster | null;
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
    const { faults, restMs } = this.#parts.options;
    for (let turn = 0; !isEnough(); turn += 1) {
      await delay(restMs * (0.5 + this.#random() / 2));
      const fault = faults[turn % faults.length];
      if (fault === undefined || isEnough()) continue;
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
        tell(`kills ${nats?.nodes[node]?.name}`);
        await nats?.nodes[node]?.kill();
        await delay(this.#random() * options.cutMs);
        await nats?.nodes[node]?.start();
        await nats?.ready();
        return;
      case 'cut-worker': {
        const way = this.#random() < 0.5 ? 'silent' : 'reset';
        tell(`cuts ${hostName(worker)} off from the queue (${way})`);
        doors.get(hostName(worker))?.set(way);
        await delay(options.cutMs);
        doors.get(hostName(worker))?.set('open');
        return;
      }
      case 'cut-node':
        tell(`cuts ${nats?.nodes[node]?.name} off from the other nodes`);
        nats?.isolate(node, 'silent');
        await delay(options.cutMs);
        nats?.isolate(node, 'open');
        await nats?.ready();
        return;
    }
  }
}
