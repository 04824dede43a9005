/**
 * Collects while parts of the stack are killed and stopped, one after the other by a seed; then lets everything come to its end and looks at what was handed over and at what is
 * left.
 */
import { readFile, readdir, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { CollectedGroupLine } from '../../../src/wire/api/collected-lines.ts';
import { readEngineLog } from '../../support/engine-process.ts';
import { seededRandom } from '../../support/random.ts';
import { judgeStorm, type StormEvidence, type StormVerdict } from './judge-storm.ts';
import { batchGroups, groupSize, StormStack } from './storm-stack.ts';

export const stormKinds = [
  'server killed',
  'server stopped',
  'gateway killed',
  'gateway stopped',
  'engine killed',
  'engine stopped',
  'engine aborts',
  'collector killed',
  'collector stopped',
] as const;
export type StormKind = (typeof stormKinds)[number];

export interface StormOptions {
  readonly ms: number;
  readonly seed: number;
  /** Faults, one after the other in an order by the seed, and again. */
  readonly kinds: readonly StormKind[];
  /** Longest pause before a fault. */
  readonly pauseMs: number;
  readonly onFault?: (kind: StormKind) => void;
}

export interface StormReport {
  readonly faults: Readonly<Record<string, number>>;
  readonly groups: number;
  readonly evidence: StormEvidence;
  readonly verdict: StormVerdict;
  /** Of collectors that gave up; none is expected to. */
  readonly complaints: readonly string[];
}

const settleMs = 120_000;

export async function runStorm(options: StormOptions): Promise<StormReport> {
  const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-storm-'));
  try {
    await using stack = await StormStack.start(dir, 200_000);
    const random = seededRandom(options.seed);
    const faults: Record<string, number> = {};
    let collectorDeaths = 0;
    stack.beginCollecting();
    const until = performance.now() + options.ms;
    for (let queue: StormKind[] = []; performance.now() < until;) {
      if (queue.length === 0) queue = shuffled(options.kinds, random);
      await delay(random() * options.pauseMs);
      const kind = queue.pop() ?? 'engine aborts';
      if (!(await strike(stack, kind, 200 + random() * 1_500))) continue;
      faults[kind] = (faults[kind] ?? 0) + 1;
      if (kind === 'collector killed') collectorDeaths += 1;
      options.onFault?.(kind);
    }
    await stack.endCollecting();
    const left = await leftOf(stack);
    const evidence: StormEvidence = {
      ...{ groups: await groupsOf(stack.output), groupSize, left },
      ...{ mostRepeated: collectorDeaths * batchGroups },
      sampled: await readEngineLog(stack.engineLog),
    };
    return {
      ...{ faults, evidence, groups: evidence.groups.length },
      ...{ verdict: judgeStorm(evidence), complaints: stack.complaints },
    };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

function shuffled(kinds: readonly StormKind[], random: () => number): StormKind[] {
  return kinds
    .map((kind) => ({ kind, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ kind }) => kind);
}

/** False: there was nothing to strike at the moment. */
async function strike(stack: StormStack, kind: StormKind, stopMs: number): Promise<boolean> {
  switch (kind) {
    case 'server killed':
      await stack.restartServer();
      return true;
    case 'engine killed':
      await stack.restartEngine();
      return true;
    case 'engine aborts':
      await fetch(`${stack.engine.url}/abort_request`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ abort_all: true }),
      });
      return true;
    case 'gateway killed':
      return kill(stack.gatewayPids()[0], 'SIGKILL');
    case 'collector killed':
      return kill(stack.collector?.pid, 'SIGKILL');
    case 'server stopped':
      return await stopped(stack.server.child.pid, stopMs);
    case 'engine stopped':
      return await stopped(stack.engine.child.pid, stopMs);
    case 'gateway stopped':
      return await stopped(stack.gatewayPids()[0], stopMs);
    case 'collector stopped':
      return await stopped(stack.collector?.pid, stopMs);
  }
}

async function stopped(pid: number | undefined, ms: number): Promise<boolean> {
  if (!kill(pid, 'SIGSTOP')) return false;
  await delay(ms);
  kill(pid, 'SIGCONT');
  return true;
}

function kill(pid: number | undefined, signal: NodeJS.Signals): boolean {
  try {
    return pid !== undefined && process.kill(pid, signal);
  } catch {
    return false;
  }
}

async function groupsOf(file: string): Promise<readonly CollectedGroupLine[]> {
  const lines = (await readFile(file, 'utf8')).split('\n').filter((line) => line !== '');
  return lines
    .map((line) => JSON.parse(line) as CollectedGroupLine | { readonly type: 'batch' })
    .filter((line) => line.type === 'group');
}

/** Looked for again until nothing is left or the time is over. */
async function leftOf(stack: StormStack): Promise<readonly string[]> {
  const until = performance.now() + settleMs;
  for (;;) {
    const live = await liveRollouts(stack.server.url);
    const captures = await readdir(path.join(stack.dir, 'server/model-calls')).catch(() => []);
    const left = [
      ...live.map((id) => `rollout ${id}`),
      ...captures.map((name) => `capture ${name}`),
    ];
    if (left.length === 0 || performance.now() > until) return left;
    await delay(250);
  }
}

async function liveRollouts(serverUrl: string): Promise<readonly string[]> {
  const answer = await fetch(`${serverUrl}/api/v1/rollouts?state=queued,running,grading`);
  const { rollouts } = (await answer.json()) as { readonly rollouts: readonly unknown[] };
  return rollouts.map((rollout) => JSON.stringify(rollout).slice(0, 200));
}
