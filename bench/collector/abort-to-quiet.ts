/**
 * One batch that is full while so many rollouts are live, each with an agent that goes on asking its model: how long it takes until nothing of them is left. With the
 * collector's abort, or with the sequence of `miles-sequence.ts`, under the same agents.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { SynchronousDriver } from '../../src/collector/drivers/synchronous-driver.ts';
import type { MemberEnd, MemberRequest } from '../../src/collector/member.ts';
import type { RolloutPort } from '../../src/collector/rollout-port.ts';
import { never } from '../../src/core/linked-abort.ts';
import { abortAsMiles } from './miles-sequence.ts';
import { Stack } from './stack.ts';

export interface Quiet {
  /** Of each rollout that was live: from the begin of the abort to its end at the server. */
  readonly rolloutMs: readonly number[];
  /** To the last thing that happened: an end at the server, or a call's at the engine. */
  readonly allMs: number;
  /** Calls that the engine got more than a second after the begin. */
  readonly callsLate: number;
}

export type AbortKind = 'ours' | 'miles';

const groupSize = 8;
const latencyMs = 1_500;
const mostCalls = 6;
/** For so long after the begin of an abort the engine is looked at, at least. */
const seenForMs = 3_000;

export async function abortToQuiet(kind: AbortKind, live: number): Promise<Quiet> {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-bench-'));
  try {
    await using stack = await Stack.start(dir, { concurrency: live, latencyMs, train: false });
    const port = new FirstGroupWaits(stack, live);
    const groups = 1 + live / groupSize;
    // Some agents are nearly done, others have long to go.
    const agents = Array.from({ length: groups }, (_, row) => ({
      agent_calls: 2 + (row % (mostCalls - 1)),
    }));
    const parts = {
      ...stack.parts({ groupSize, batchGroups: 1, startGroups: groups }, agents),
      rollouts: port,
    };
    const began = kind === 'ours' ? await abortOurs(parts) : await abortMiles(stack, port, parts);
    // Whoever would call again has the time to.
    await delay(Math.max(0, began + seenForMs - Date.now()));
    const calls = await stack.calls();
    const ended = await Promise.all(port.live.map((id) => stack.endedAt(id)));
    return {
      rolloutMs: ended.map((at) => Math.max(0, at - began)),
      allMs: Math.max(...ended, ...calls.map(({ endedAt }) => endedAt)) - began,
      callsLate: calls.filter(({ beganAt }) => beganAt > began + 1_000).length,
    };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

type Parts = ReturnType<Stack['parts']>;

async function abortOurs(parts: Parts): Promise<number> {
  const driver = new SynchronousDriver(parts, 'bench');
  try {
    const receipt = await (await driver.collect(never))?.quiet;
    if (receipt?.isComplete !== true) throw new Error('the abort did not reach everything');
    return receipt.at.getTime();
  } finally {
    await driver.stop('shutdown');
  }
}

async function abortMiles(stack: Stack, port: FirstGroupWaits, parts: Parts): Promise<number> {
  const groups: Promise<unknown>[] = [];
  for (let row = 0; row < parts.options.startGroups; row += 1) {
    const seed = parts.source.take();
    if (seed === null) throw new Error('there are too few rows');
    groups.push(
      Promise.all(
        Array.from({ length: groupSize }, (_, memberIndex) => {
          const { groupIndex } = seed;
          const index = groupIndex * groupSize + memberIndex;
          return port.run(
            {
              ...{ rolloutId: `miles-${index}`, groupIndex, memberIndex, index, attempt: 1 },
              ...{ row: seed.row, weightVersion: null, seed: null, resume: [] },
            },
            never,
          );
        }),
      ),
    );
  }
  await groups[0];
  const began = Date.now();
  await abortAsMiles(stack.engine.url, groups);
  return began;
}

/** The first group is complete as soon as all others are live at the server: then the batch is full. */
class FirstGroupWaits implements RolloutPort {
  readonly live: string[] = [];
  readonly #stack: Stack;
  readonly #allLive: Promise<void>;

  constructor(stack: Stack, live: number) {
    this.#stack = stack;
    this.#allLive = untilRunning(stack, live);
    // Whoever waits for it hears it; nobody may.
    this.#allLive.catch(() => undefined);
  }

  async run(request: MemberRequest, signal: AbortSignal): Promise<MemberEnd> {
    if (request.groupIndex > 0) {
      this.live.push(request.rolloutId);
      return await this.#stack.rollouts.run(request, signal);
    }
    await this.#allLive;
    return {
      ...{ status: 'completed', fault: null, cause: null, message: null, isRetryable: false },
      ...{ reward: 1, samples: [], metadata: {} },
    };
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

async function untilRunning({ server }: Stack, live: number): Promise<void> {
  const giveUpAt = performance.now() + 60_000;
  // Those that are done before the last one is there are few: agents have two calls at least.
  while ((await server.metric('slipway_admission_running')) < live) {
    if (performance.now() > giveUpAt) throw new Error(`${live} rollouts were never live at once`);
    await delay(20);
  }
}
