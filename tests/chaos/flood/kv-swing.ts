/** A server whose engine's KV cache fills and empties while rollouts run. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { never } from '../../../src/core/linked-abort.ts';
import type { Engine } from '../../../src/engines/engine.ts';
import { openEngine } from '../../../src/engines/registry.ts';
import { startEngineProcess } from '../../support/engine-process.ts';
import { startServeProcess } from '../../support/serve-process.ts';
import { until } from '../../support/until.ts';
import { rolloutBody } from './flood.ts';

const kvTokens = 4_000;
const maxConcurrent = 32;

export interface KvSwing {
  /** From the full cache until fewer might run. */
  readonly shrunkAfterMs: number;
  readonly shrunkTo: number;
  readonly leastCap: number;
  /** From the empty cache until all might run again; null = they never did. */
  readonly regrownAfterMs: number | null;
  /** Looks at which more ran than before although the cap was lower already. */
  readonly overruns: number;
}

export async function swingKv(): Promise<KvSwing> {
  const dir = await mkdtemp(path.join(tmpdir(), 'slipway-kv-'));
  await using engineProcess = await startEngineProcess([
    ...['--kv-tokens', String(kvTokens), '--token-latency', 'constant:60000'],
  ]);
  const engine = await openEngine({ kind: 'sglang', baseUrl: engineProcess.url, apiKey: null });
  try {
    await using server = await startServeProcess(
      [
        ...['--backend', 'null', '--engine-url', engineProcess.url, '--data-port', '0'],
        ...['--max-concurrent', String(maxConcurrent), '--max-queue-depth', '400'],
        ...['--data-dir', path.join(dir, 'data')],
      ],
      { stateDir: dir },
    );
    return await swing(server.url, engine);
  } finally {
    await engine.destroy(new Error('the swing is over'));
    await rm(dir, { recursive: true, force: true });
  }
}

async function swing(url: string, engine: Engine): Promise<KvSwing> {
  const load = steadyLoad(url);
  const low = await hold(engine, 0.3);
  await until('all places are taken', async () => (await look(url)).running === maxConcurrent);
  const high = await hold(engine, 0.65);
  const full = performance.now();
  await until('fewer may run', async () => (await look(url)).running_cap < maxConcurrent);
  const shrunkAfterMs = performance.now() - full;
  const shrunkTo = (await look(url)).running_cap;
  let leastCap = shrunkTo;
  let overruns = 0;
  let before = maxConcurrent;
  for (const end = performance.now() + 8_000; performance.now() < end;) {
    await delay(50);
    const { running, running_cap: cap } = await look(url);
    leastCap = Math.min(leastCap, cap);
    if (running > Math.max(cap, before)) overruns += 1;
    before = running;
  }
  await high.release();
  const empty = performance.now();
  let regrownAfterMs: number | null = null;
  while (regrownAfterMs === null && performance.now() - empty < 60_000) {
    if ((await look(url)).running_cap === maxConcurrent) regrownAfterMs = performance.now() - empty;
    await delay(50);
  }
  await low.release();
  await load.stop();
  return { shrunkAfterMs, shrunkTo, leastCap, regrownAfterMs, overruns };
}

async function look(
  url: string,
): Promise<{ readonly running: number; readonly running_cap: number }> {
  const answer = await fetch(`${url}/api/v1/admission`);
  return (await answer.json()) as { running: number; running_cap: number };
}

/** Keeps places taken. */
function steadyLoad(url: string): { stop(): Promise<void> } {
  let isOver = false;
  const worker = async (name: number): Promise<void> => {
    for (let at = 0; !isOver; at += 1) {
      // Nobody listens for callbacks: the reservation ends with the first round of attempts.
      const body = rolloutBody(`w${name}-${at}`, {
        callbackUrl: 'http://127.0.0.1:9',
        metadata: { null: { duration_ms: 300 } },
      });
      const answer = await fetch(`${url}/rollout`, {
        ...{ method: 'POST', body: JSON.stringify(body) },
        headers: { 'content-type': 'application/json' },
      });
      await answer.text();
      await delay(400);
    }
  };
  const workers = Array.from({ length: 64 }, (_, name) => worker(name));
  return {
    stop: async () => {
      isOver = true;
      await Promise.allSettled(workers);
    },
  };
}

/** Holds a share of the cache with a request that does not get on. */
async function hold(engine: Engine, share: number): Promise<{ release(): Promise<void> }> {
  const requestId = `hold-${share}`;
  const before = (await engine.load(never)).kvUse ?? 0;
  const controller = new AbortController();
  const ids = Array.from({ length: Math.floor(share * kvTokens) }, (_, at) => 100 + (at % 50));
  const call = engine.generate(
    {
      ...{ requestId, model: null, input: { kind: 'tokens', ids } },
      ...{ sampling: { maxTokens: 4 }, isStreaming: true, wantsTokens: false },
    },
    controller.signal,
  );
  call.catch(() => {
    // It ends when it is released.
  });
  await until('the cache is that full', async () => {
    const { kvUse } = await engine.load(never);
    return kvUse !== null && kvUse >= before + share - 0.01;
  });
  return {
    release: async () => {
      controller.abort(new Error('enough'));
      await engine.abort(requestId, never);
    },
  };
}
