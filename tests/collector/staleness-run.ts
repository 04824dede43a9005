/**
 * The asynchronous driver against a real server and a real engine process while the weights change: some updates pause the engine, some fall into generations that run, some
 * fail. What is handed over is compared with the engine's own log, token for token. Beside it: a long pause, and how much faster it is than the synchronous one.
 */
import { readEngineLog, type EngineLogLine } from '../support/engine-process.ts';
import { systemClock } from '../../src/core/clock.ts';
import { LinkedAbort, never } from '../../src/core/linked-abort.ts';
import { AsynchronousDriver } from '../../src/collector/drivers/asynchronous-driver.ts';
import type { CollectorDriver } from '../../src/collector/drivers/driver.ts';
import { SynchronousDriver } from '../../src/collector/drivers/synchronous-driver.ts';
import type { CollectedGroup } from '../../src/collector/group.ts';
import type { MemberRequest } from '../../src/collector/member.ts';
import type { CollectorOptions } from '../../src/collector/options.ts';
import { seededRandom } from '../../src/core/seeded-random.ts';
import { ServerRollouts } from '../../src/collector/server/server-rollouts.ts';
import type { Engine } from '../../src/engines/engine.ts';
import { openEngine } from '../../src/engines/registry.ts';
import { scene, type Scene } from './scripted-rollouts.ts';

/** Replies that differ, so that a span has one line of the log. */
export const staleEngineFlags = ['--policy', 'random-text'] as const;
export const staleServeFlags = [
  ...['--backend', 'null', '--gateway-engine-kind', 'sglang'],
  ...['--max-concurrent', '256', '--max-queue-depth', '1000'],
  ...['--gateway-sampling', JSON.stringify({ max_tokens: 24 })],
] as const;

export interface Place {
  readonly serverUrl: string;
  readonly engineUrl: string;
  readonly engineLog: string;
}

type LogLine = EngineLogLine & {
  readonly weight_version: string;
  readonly first_weight_version: string | null;
};

export interface StalenessSize {
  readonly limit: number;
  readonly everyMs: number;
  /** Of them every third falls into generations that run, and every fourth fails. */
  readonly updates: number;
  readonly groupSize: number;
  readonly batchGroups: number;
  readonly startGroups: number;
  readonly runName: string;
  /** Longest time before a rollout calls its model. */
  readonly capMs: number;
}

export interface StalenessResult {
  readonly groups: number;
  readonly spans: number;
  /** Groups by how far behind they were when they were handed over. */
  readonly behind: Readonly<Record<number, number>>;
  readonly staleGroups: number;
  /** Calls that an update fell into, among those that were handed over. */
  readonly mixedCalls: number;
  readonly failedUpdates: number;
  readonly version: number;
  /** Ends of rollouts that were neither the policy's own nor asked for. */
  readonly failures: readonly string[];
  readonly problems: readonly string[];
}

export async function runStaleness(size: StalenessSize, at: Place): Promise<StalenessResult> {
  await using world = await open(
    at,
    {
      ...{ groupSize: size.groupSize, batchGroups: size.batchGroups },
      ...{ startGroups: size.startGroups, abort: { hookMs: 20_000, drainMs: 20_000 } },
    },
    { seed: 1, capMs: size.capMs },
  );
  const { parts, weights } = world;
  const driver = new AsynchronousDriver(parts, size.runName, { maxStaleness: size.limit });
  const handedOver: { readonly group: CollectedGroup; readonly version: number }[] = [];
  let failedUpdates = 0;
  using training = new LinkedAbort([]);
  await weights.publish('paused', driver);
  const collecting = (async () => {
    while (!training.signal.aborted) {
      const batch = await driver.collect(training.signal).catch((error: unknown) => {
        if (training.signal.aborted) return null;
        throw error;
      });
      const version = weights.version;
      for (const group of batch?.groups ?? []) handedOver.push({ group, version });
    }
  })();
  for (let update = 1; update <= size.updates; update += 1) {
    await systemClock.sleep(size.everyMs, never);
    const kind = update % 4 === 0 ? 'failing' : update % 3 === 0 ? 'flying' : 'paused';
    if (!(await weights.publish(kind, driver))) failedUpdates += 1;
  }
  await systemClock.sleep(size.everyMs, never);
  training.abort(new Error('enough'));
  await collecting;
  await driver.stop('shutdown');
  const judged = compared(handedOver, (await readEngineLog(at.engineLog)) as LogLine[], size.limit);
  const staleGroups = parts.events.filter(
    (event) => event.type === 'group:dropped' && event.group.reason === 'stale',
  ).length;
  return {
    ...{ groups: handedOver.length, staleGroups, failedUpdates, version: weights.version },
    ...{ ...judged, failures: failuresOf(parts) },
  };
}

/** Rollouts that are caught by a pause of the engine, in mid-generation and before; how they ended. */
export async function runPause(
  {
    pauseMs,
    runName,
    capMs,
  }: { readonly pauseMs: number; readonly runName: string; readonly capMs: number },
  at: Place,
): Promise<{
  readonly held: number;
  readonly groups: number;
  readonly failures: readonly string[];
}> {
  await using world = await open(
    at,
    { groupSize: 4, batchGroups: 4, startGroups: 4 },
    { seed: 1, capMs },
  );
  const { parts, weights } = world;
  const driver = new AsynchronousDriver(parts, runName);
  await weights.publish('paused', driver);
  const collecting = driver.collect(never);
  collecting.catch(() => undefined);
  while ((await world.engine.load(never)).runningRequests === 0) await systemClock.sleep(20, never);
  driver.pause();
  await world.engine.pause('in_place', never);
  await systemClock.sleep(pauseMs, never);
  const { runningRequests, waitingRequests } = await world.engine.load(never);
  await world.engine.continue(never);
  driver.resume();
  const batch = await collecting;
  await driver.stop('shutdown');
  const held = runningRequests + waitingRequests;
  return { held, groups: batch?.groups.length ?? 0, failures: failuresOf(parts) };
}

/** How long a trainer takes for so many batches, each of which it works on for a while. */
export async function runTail(
  size: {
    readonly mode: 'synchronous' | 'asynchronous';
    readonly batches: number;
    readonly trainMs: number;
    readonly seed: number;
    readonly runName: string;
  },
  at: Place,
): Promise<number> {
  await using world = await open(
    at,
    { groupSize: 4, batchGroups: 8 },
    { seed: size.seed, capMs: 4_000 },
  );
  const { parts, weights } = world;
  const asynchronous =
    size.mode === 'asynchronous' ? new AsynchronousDriver(parts, size.runName) : null;
  const driver: CollectorDriver = asynchronous ?? new SynchronousDriver(parts, size.runName);
  await weights.publish('paused', asynchronous);
  const beganMs = performance.now();
  for (let count = 0; count < size.batches; count += 1) {
    const batch = await driver.collect(never);
    await systemClock.sleep(size.trainMs, never);
    await batch?.quiet;
    await weights.publish('paused', asynchronous);
  }
  const tookMs = performance.now() - beganMs;
  await driver.stop('shutdown');
  return tookMs;
}

/** What two batches of the synchronous driver hold, one rollout after the other. */
export async function runSynchronous(
  { seed, runName }: { readonly seed: number; readonly runName: string },
  at: Place,
): Promise<readonly unknown[]> {
  await using world = await open(
    at,
    { groupSize: 2, batchGroups: 2, maxConcurrent: 1 },
    { seed, capMs: 100 },
  );
  const driver = new SynchronousDriver(world.parts, runName);
  const seen: unknown[] = [];
  for (let count = 0; count < 2; count += 1) {
    const batch = await driver.collect(never);
    for (const { seed: group, members } of batch?.groups ?? [])
      seen.push([group.row.rowIndex, members.map(({ end }) => end.samples.map((s) => s.tokens))]);
  }
  await driver.stop('shutdown');
  return seen;
}

interface World extends AsyncDisposable {
  readonly parts: Scene;
  readonly weights: Weights;
  readonly engine: Engine;
}

async function open(at: Place, options: CollectorOptions, tail: Tail): Promise<World> {
  const engine = await openEngine({ kind: 'sglang', baseUrl: at.engineUrl, apiKey: null });
  const rollouts = new ServerRollouts({
    ...{ serverUrl: at.serverUrl, serverKey: null, modelUrl: `${at.engineUrl}/v1` },
    ...{ modelKey: null, train: true, isGraded: true, agentTimeoutSec: null },
    ...{
      graderTimeoutSec: null,
      listen: {},
      watchMs: 30_000,
      patienceMs: 300_000,
      clock: systemClock,
      fetch,
    },
  });
  const weights = new Weights(engine, at.engineUrl);
  const parts = scene(options, {
    rollouts: {
      run: (request, signal) => rollouts.run(withFate(request, tail), signal),
      close: () => Promise.resolve(),
    },
    ...{ findHook: () => Promise.resolve(rollouts.abort), clock: systemClock, rowCount: 50 },
    weightVersion: () => weights.version,
  });
  return {
    ...{ parts, weights, engine },
    async [Symbol.asyncDispose]() {
      await rollouts.close();
      await engine.close();
    },
  };
}

interface Tail {
  readonly seed: number;
  readonly capMs: number;
}

/** A long tail, by the seed; then two calls of the model. */
function withFate(request: MemberRequest, { seed, capMs }: Tail): MemberRequest {
  const random = seededRandom(seed * 1_000_003 + request.index * 31);
  random();
  const duration = Math.min(capMs, 60 * (1 - random()) ** (-1 / 0.9));
  const fate = { duration_ms: duration, agent_calls: 2, reward: request.memberIndex % 2 };
  return { ...request, row: { ...request.row, metadata: { null: fate } } };
}

/** The trainer's version of the weights, which is one that the engine has said it took. */
class Weights {
  readonly #engine: Engine;
  readonly #url: string;
  #version = 0;

  constructor(engine: Engine, url: string) {
    this.#engine = engine;
    this.#url = url;
  }

  get version(): number {
    return this.#version;
  }

  /** `flying` changes them under generations that run; `failing` is refused by the engine. Whether they are others now. */
  async publish(
    kind: 'paused' | 'flying' | 'failing',
    driver: AsynchronousDriver | null,
  ): Promise<boolean> {
    const isPaused = kind !== 'flying';
    if (isPaused) {
      driver?.pause();
      await this.#engine.pause('in_place', never);
    }
    try {
      const next = this.#version + 1;
      const answer = await fetch(`${this.#url}/update_weight_version`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(kind === 'failing' ? {} : { new_version: String(next) }),
      });
      await answer.arrayBuffer();
      if (answer.ok) this.#version = next;
      return answer.ok;
    } finally {
      if (isPaused) {
        await this.#engine.continue(never);
        driver?.resume();
      } else driver?.weightsChanged();
    }
  }
}

/** Every span against the line that the engine wrote of it. */
function compared(
  handedOver: readonly { readonly group: CollectedGroup; readonly version: number }[],
  lines: readonly LogLine[],
  limit: number,
): Pick<StalenessResult, 'spans' | 'behind' | 'mixedCalls' | 'problems'> {
  const byTokens = Map.groupBy(lines, (line) => keyOf(line.prompt_ids, line.output_ids));
  const problems: string[] = [];
  const behind: Record<number, number> = {};
  let spans = 0;
  let mixedCalls = 0;
  for (const { group, version } of handedOver) {
    let oldest = Infinity;
    for (const { end, request } of group.members)
      for (const sample of end.samples)
        for (const span of sample.spans) {
          spans += 1;
          const { tokens } = sample;
          const found = byTokens.get(
            keyOf(tokens.slice(0, span.begin), tokens.slice(span.begin, span.end)),
          );
          const line = found?.find(({ weight_version: said }) => said === span.weightVersion);
          if (line === undefined) {
            const said = found?.map(({ weight_version: each }) => each).join(' ') ?? 'nothing';
            problems.push(
              `${request.rolloutId}: ${span.weightVersion ?? 'no version'}, not ${said}`,
            );
            continue;
          }
          if (line.first_weight_version !== line.weight_version) mixedCalls += 1;
          oldest = Math.min(oldest, Number(line.first_weight_version));
        }
    const age = version - oldest;
    behind[age] = (behind[age] ?? 0) + 1;
    if (!(age <= limit))
      problems.push(`a group is ${age} versions behind, at most ${limit} may be`);
  }
  return { spans, behind, mixedCalls, problems };
}

function keyOf(prompt: readonly number[], output: readonly number[]): string {
  return `${prompt.join(' ')}|${output.join(' ')}`;
}

function failuresOf({ events }: Scene): readonly string[] {
  return events.flatMap((event) =>
    event.type === 'member:ended' && event.end.status === 'failed'
      ? [`${event.request.rolloutId}: ${event.end.cause ?? ''} ${event.end.message ?? ''}`]
      : [],
  );
}
