/**
 * `npm run bench -- server [accept|lives|memory]`: what durable acceptance costs over bare group-committed inserts into SQLite on the same disk, at the
 * store and over HTTP; whole lives per second; memory per waiting and per running rollout; event-loop lag. The load and the receiver of callbacks are
 * processes of their own. Rounds are interleaved, figures are medians.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { systemClock } from '../src/core/clock.ts';
import { never } from '../src/core/linked-abort.ts';
import { silentLogger } from '../src/core/logger.ts';
import { FileLocks } from '../src/store/file/file-lock.ts';
import { SqliteRolloutStore } from '../src/store/sqlite/sqlite-rollout-store.ts';
import { report, reportWhenLate, type Figure, type Goal } from './report.ts';
import { interleaved, median, timed } from './samples.ts';
import { BareGroups } from './server/bare.ts';
import type { LoadResult } from './server/load.ts';
import { ListeningProcess, load } from './server/processes.ts';
import { rolloutBody } from './server/rollout-body.ts';
import { telemetryMicrosPerLife } from './server/telemetry-cost.ts';
import { sized } from './size.ts';

const rounds = sized(3, 1);
const concurrency = 64;
const accepts = sized(6_000, 3_000);
const lives = sized(3_000, 1_500);
const liveRollouts = 1_024;
const hourMs = 3_600_000;

const wanted = process.argv[2] ?? 'all';
const root = await mkdtemp(path.join(os.tmpdir(), 'slipway-bench-'));
const figures: Figure[] = [];
const goals: Goal[] = [];
reportWhenLate('server', () => ({ figures, goals }));
let folders = 0;
const newPath = (): string => path.join(root, `${(folders += 1)}`);

/** Writes per second, `concurrency` at a time. */
async function perSecond(write: (id: string, body: string) => Promise<unknown>): Promise<number> {
  let next = 0;
  const inTurn = async (): Promise<void> => {
    while (next < accepts) {
      const id = `r-${(next += 1)}`;
      await write(id, rolloutBody(id, { durationMs: 0, callbackUrl: null }));
    }
  };
  const { ms } = await timed(() => Promise.all(Array.from({ length: concurrency }, inTurn)));
  return (1_000 * accepts) / ms;
}

async function bareInserts(): Promise<number> {
  using groups = new BareGroups(newPath());
  return await perSecond((id, body) => groups.insert(id, body));
}

async function storeAccepts(): Promise<number> {
  const store = await SqliteRolloutStore.open(newPath(), {
    ...{ clock: systemClock, logger: silentLogger, signal: never },
    locks: new FileLocks(systemClock),
  });
  try {
    return await perSecond((id, request) =>
      store.accept({
        ...{ id, tenant: 'default', request, acceptedAt: new Date() },
        digest: id.padStart(64, '0'),
      }),
    );
  } finally {
    await store.close();
  }
}

/** Acceptance alone: one rollout runs for an hour, the others wait behind it. */
async function waitingServer(): Promise<ListeningProcess> {
  return await ListeningProcess.server(
    ...([newPath(), '--max-concurrent', '1', '--max-queue-depth', '1000000'] as const),
  );
}

async function overHttp(
  target: ListeningProcess,
  options: { readonly count: number; readonly concurrency: number },
): Promise<LoadResult> {
  return await load({
    ...{ url: target.url, durationMs: hourMs, callbackUrl: null, ...options },
    prefix: `load-${options.concurrency}`,
  });
}

async function measureAccepts(): Promise<void> {
  const latencies: Record<string, LoadResult[]> = { ours: [], bare: [] };
  const lags: number[] = [];
  const costs: number[] = [];
  const http = async (kind: 'ours' | 'bare'): Promise<number> => {
    await using target =
      kind === 'ours'
        ? await waitingServer()
        : await ListeningProcess.part('bare-endpoint', newPath());
    await overHttp(target, { count: 500, concurrency });
    latencies[kind]?.push(await overHttp(target, { count: 500, concurrency: 1 }));
    // A scrape begins a new window.
    if (kind === 'ours') await target.lagP99Ms();
    const cpuBefore = kind === 'ours' ? await target.metric('process_cpu_seconds_total') : 0;
    const { seconds } = await load({
      ...{ url: target.url, durationMs: hourMs, callbackUrl: null },
      ...{ prefix: 'many', count: accepts, concurrency },
    });
    if (kind === 'ours') {
      lags.push(await target.lagP99Ms());
      const cpu = (await target.metric('process_cpu_seconds_total')) - cpuBefore;
      costs.push((1e6 * cpu) / accepts);
    }
    return accepts / seconds;
  };
  const results = await interleaved(rounds, {
    bare: bareInserts,
    store: storeAccepts,
    bareHttp: () => http('bare'),
    ours: () => http('ours'),
  });
  const ratio = (over: readonly number[], under: readonly number[]): number =>
    median(over.map((value, round) => value / (under[round] ?? Number.NaN)));
  const latency = (kind: string, of: (result: LoadResult) => number): number =>
    median((latencies[kind] ?? []).map(of));
  figures.push(
    { name: 'bare group-committed inserts', value: median(results.bare), unit: '/s' },
    { name: 'accepts of the store', value: median(results.store), unit: '/s' },
    { name: 'bare HTTP endpoint', value: median(results.bareHttp), unit: '/s' },
    { name: 'accepts over HTTP', value: median(results.ours), unit: '/s' },
    { name: 'processor time per accept over HTTP', value: median(costs), unit: 'µs' },
  );
  for (const kind of ['bare', 'ours'])
    figures.push(
      { name: `one at a time, ${kind} p50`, value: latency(kind, (r) => r.p50Ms), unit: 'ms' },
      { name: `one at a time, ${kind} p99`, value: latency(kind, (r) => r.p99Ms), unit: 'ms' },
    );
  const added = latency('ours', (r) => r.p50Ms) - latency('bare', (r) => r.p50Ms);
  figures.push({ name: 'one at a time, added by ours p50', value: added, unit: 'ms' });
  goals.push(
    {
      name: 'accepts of the store / bare group-committed inserts',
      ...{ measured: ratio(results.store, results.bare), limit: 0.3 },
      ...{ direction: 'at least', unit: '×' },
    },
    {
      name: 'accepts over HTTP / bare HTTP endpoint with group-committed inserts',
      ...{ measured: ratio(results.ours, results.bareHttp), limit: 0.3 },
      ...{ direction: 'at least', unit: '×' },
    },
    {
      name: 'durable accepts over HTTP',
      ...{ measured: median(results.ours), limit: 1_500, direction: 'at least', unit: '/s' },
    },
    {
      name: 'event-loop lag p99 meanwhile',
      ...{ measured: median(lags), limit: 50, direction: 'at most', unit: 'ms' },
    },
  );
}

/** From submission to both callbacks taken, as many at once as run. */
async function measureLives(): Promise<void> {
  const rates: number[] = [];
  const lags: number[] = [];
  const costs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    await using receiver = await ListeningProcess.part('receiver');
    await using server = await ListeningProcess.server(
      ...([newPath(), '--max-concurrent', '64', '--max-queue-depth', '1000000'] as const),
    );
    const begin = performance.now();
    const cpuBefore = await server.metric('process_cpu_seconds_total');
    await load({
      ...{ url: server.url, prefix: 'life', count: lives, concurrency: 32 },
      ...{ durationMs: 0, callbackUrl: receiver.url },
    });
    const graded = async (): Promise<number> =>
      Number(await (await fetch(`${receiver.url}/count`)).text());
    while ((await graded()) < lives) await delay(50);
    rates.push((1_000 * lives) / (performance.now() - begin));
    const cpu = (await server.metric('process_cpu_seconds_total')) - cpuBefore;
    costs.push((1e6 * cpu) / lives);
    lags.push(await server.lagP99Ms());
  }
  figures.push(
    { name: 'whole lives, callbacks delivered', value: median(rates), unit: '/s' },
    { name: 'event-loop lag p99 meanwhile', value: median(lags), unit: 'ms' },
    { name: 'processor time per life', value: median(costs), unit: 'µs' },
  );
  const telemetry = await telemetryMicrosPerLife(20_000);
  goals.push({
    name: 'share of metrics in the processor time of a life',
    ...{ measured: (100 * telemetry) / median(costs), limit: 3, direction: 'at most', unit: '%' },
  });
}

async function measureMemory(): Promise<void> {
  const perRollout: Record<'running' | 'waiting', number[]> = { running: [], waiting: [] };
  for (let round = 0; round < rounds; round += 1) {
    await using server = await ListeningProcess.server(
      ...[newPath(), '--max-concurrent', String(liveRollouts)],
      ...['--max-queue-depth', String(liveRollouts)],
    );
    const residentKiB = async (): Promise<number> =>
      (await server.metric('process_resident_memory_bytes')) / 1024;
    let before = await residentKiB();
    for (const kind of ['running', 'waiting'] as const) {
      await load({
        ...{ url: server.url, prefix: kind, count: liveRollouts, concurrency: 32 },
        ...{ durationMs: hourMs, callbackUrl: null },
      });
      const name = `slipway_admission_${kind === 'running' ? 'running' : 'queued'}`;
      while ((await server.metric(name)) < liveRollouts) await delay(50);
      const after = await residentKiB();
      perRollout[kind].push((after - before) / liveRollouts);
      before = after;
    }
  }
  for (const kind of ['running', 'waiting'] as const)
    goals.push({
      name: `memory per ${kind} rollout, ${liveRollouts} of them`,
      ...{ measured: median(perRollout[kind]), limit: 200, direction: 'at most', unit: 'KiB' },
    });
}

try {
  if (wanted === 'all' || wanted === 'accept') await measureAccepts();
  if (wanted === 'all' || wanted === 'lives') await measureLives();
  if (wanted === 'all' || wanted === 'memory') await measureMemory();
  report('server', { figures, goals });
} finally {
  await rm(root, { recursive: true, force: true });
}
