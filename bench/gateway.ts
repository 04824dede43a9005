/**
 * `npm run bench -- gateway [SECTION]`: `relay`, what the relay adds to a model call at 64 at a time, over the same calls without it, in interleaved rounds; and
 * 1,024 streams at once: all complete, how late their events are, and whether a dead key is refused soon meanwhile. Agents, relay and upstream are
 * processes of their own. Beside nginx, Portkey's gateway and LiteLLM, each on one core: `calls`, whole answers; `captured`, answers that are kept; `streams`, 256
 * at once. `SECONDS_PER_RUN` (4) is how long each of them is measured at a time.
 */
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { report, reportWhenLate, type Figure, type Goal } from './report.ts';
import { interleaved, median, quantile } from './samples.ts';
import type { CallsResult, CallsTask } from './gateway/calls.ts';
import { capturedCalls, streamedCalls, wholeCalls, type Results } from './gateway/peers.ts';
import { needPrograms } from './gateway/programs.ts';
import { eventsPerStream } from './gateway/upstream.ts';
import { ListeningProcess, runPart } from './server/processes.ts';
import { sized } from './size.ts';

const rounds = sized(3, 1);
const concurrency = 64;
const calls = 4_000;
const streams = 1_024;

const part = (name: string): string => path.join(import.meta.dirname, 'gateway', `${name}.ts`);
const make = (task: CallsTask): Promise<CallsResult> => runPart(part('calls'), task);

async function relayAlone(): Promise<Results> {
  await using upstream = await ListeningProcess.start([part('upstream')]);
  await using relay = await ListeningProcess.start([part('relay'), upstream.url]);
  const figures: Figure[] = [];
  const goals: Goal[] = [];

  const whole: Record<'direct' | 'relayed', CallsResult[]> = { direct: [], relayed: [] };
  const variant = (kind: 'direct' | 'relayed', url: string) => async () => {
    const result = await make({ url, count: calls, concurrency, isStreamed: false });
    whole[kind].push(result);
    return calls / result.seconds;
  };
  const rates = await interleaved(rounds, {
    direct: variant('direct', upstream.url),
    relayed: variant('relayed', relay.url),
  });
  const added = (of: (result: CallsResult) => number): number =>
    median(whole.relayed.map(of)) - median(whole.direct.map(of));
  figures.push(
    { name: `${concurrency} at a time, direct`, value: median(rates.direct), unit: '/s' },
    { name: 'direct p50', value: median(whole.direct.map((r) => r.p50Ms)), unit: 'ms' },
    { name: 'relayed p50', value: median(whole.relayed.map((r) => r.p50Ms)), unit: 'ms' },
    { name: 'added p50, all cores busy', value: added((r) => r.p50Ms), unit: 'ms' },
    { name: 'added p99, all cores busy', value: added((r) => r.p99Ms), unit: 'ms' },
  );
  goals.push(
    {
      name: `${concurrency} at a time, relayed`,
      ...{ measured: median(rates.relayed), limit: 500, direction: 'at least', unit: '/s' },
    },
    {
      name: 'calls that broke',
      ...{ measured: whole.relayed.reduce((sum, { broken }) => sum + broken, 0), limit: 0 },
      ...{ direction: 'at most', unit: 'calls' },
    },
  );

  const origin = new URL(relay.url).origin;
  const deadKeyMs: number[] = [];
  const over = new AbortController();
  const probing = (async (): Promise<void> => {
    while (!over.signal.aborted) {
      const begin = performance.now();
      const { status } = await fetch(`${origin}/k/dead/v1/chat/completions`, { method: 'POST' });
      if (status === 401) deadKeyMs.push(performance.now() - begin);
      await delay(50);
    }
  })();
  const usage = async (): Promise<{ readonly rss: number; readonly cpuMs: number }> =>
    (await (await fetch(`${origin}/usage`)).json()) as { rss: number; cpuMs: number };
  const before = await usage();
  const streamTask = { count: streams, concurrency: streams, isStreamed: true };
  const relayed = await make({ url: relay.url, ...streamTask });
  const after = await usage();
  over.abort();
  await probing;
  const direct = await make({ url: upstream.url, ...streamTask });
  figures.push(
    { name: `${streams} streams direct: an event is late by p99`, value: direct.p99Ms, unit: 'ms' },
    {
      name: `${streams} streams relayed: an event is late by p50`,
      value: relayed.p50Ms,
      unit: 'ms',
    },
    {
      name: `${streams} streams relayed: an event is late by p99`,
      value: relayed.p99Ms,
      unit: 'ms',
    },
    {
      name: 'processor time of the relay per event',
      ...{
        value: (1_000 * (after.cpuMs - before.cpuMs)) / (streams * eventsPerStream),
        unit: 'µs',
      },
    },
    { name: 'memory of the relay with them', value: after.rss / 2 ** 20, unit: 'MiB' },
  );
  goals.push(
    {
      name: `${streams} streams: incomplete ones`,
      ...{ measured: relayed.broken, limit: 0, direction: 'at most', unit: 'streams' },
    },
    {
      name: 'a dead key is refused meanwhile within p99',
      ...{ measured: quantile(deadKeyMs, 0.99), limit: 100, direction: 'at most', unit: 'ms' },
    },
  );
  return { figures, goals };
}

const withPeers = (measure: () => Promise<Results>) => (): Promise<Results> => {
  needPrograms({ nginx: 'nginx-light', wrk: 'wrk', taskset: 'util-linux' });
  return measure();
};
const sections: Readonly<Record<string, () => Promise<Results>>> = {
  relay: relayAlone,
  calls: withPeers(wholeCalls),
  captured: withPeers(capturedCalls),
  streams: withPeers(streamedCalls),
};
const wanted = process.argv[2];
if (wanted !== undefined && sections[wanted] === undefined)
  throw new Error(`no part of this: ${wanted} (${Object.keys(sections).join(', ')})`);
const results: Results[] = [];
const soFar = (): Results => ({
  figures: results.flatMap(({ figures }) => figures),
  goals: results.flatMap(({ goals }) => goals),
});
reportWhenLate('gateway', soFar);
for (const [name, measure] of Object.entries(sections))
  if (wanted === undefined || wanted === name) results.push(await measure());
report('gateway', soFar());
