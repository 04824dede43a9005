/**
 * The gateway beside other programs that pass model calls on, each alone on one core, in interleaved rounds: nginx, and Portkey's gateway. Whole answers at
 * 1, 64 and 512 connections; 256 streams at once, by processor time per event and by how late events are.
 */
import path from 'node:path';
import { noRules, type RouteRules } from '../../src/wire/rollout/route-rules.ts';
import type { Figure, Goal } from '../report.ts';
import { interleaved, median } from '../samples.ts';
import { ListeningProcess, runPart } from '../server/processes.ts';
import type { CallsResult, CallsTask } from './calls.ts';
import { onCore, processorMs } from './cores.ts';
import { Nginx } from './nginx.ts';
import { startPortkey } from './portkey.ts';
import { wrk, type WrkResult } from './wrk.ts';

const rounds = 3;
const seconds = Number(process.env['SECONDS_PER_RUN'] ?? '4');
const streams = 256;
const eventsPerStream = 200;
const eventEveryMs = 25;

const part = (name: string): string => path.join(import.meta.dirname, `${name}.ts`);
const measured = { before: onCore('measured', []) };
const around = { before: onCore('around', []) };

/** Whom calls go through. */
interface Peer {
  /** Of the API, with `/v1`. */
  readonly url: string;
  readonly pid: number | null;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Results {
  readonly figures: readonly Figure[];
  readonly goals: readonly Goal[];
}

export async function comparePeers(): Promise<Results> {
  const whole = await wholeCalls();
  const streamed = await streamedCalls();
  return {
    figures: [...whole.figures, ...streamed.figures],
    goals: [...whole.goals, ...streamed.goals],
  };
}

async function relayBefore(
  upstreamUrl: string,
  rules: RouteRules = noRules,
): Promise<ListeningProcess> {
  return await ListeningProcess.start(
    [part('relay'), upstreamUrl, JSON.stringify(rules)],
    measured,
  );
}

/** What a trainer fixes. */
const pins: RouteRules = { ...noRules, pins: { temperature: 1, top_p: 1, top_k: -1 } };

async function wholeCalls(): Promise<Results> {
  await using upstream = await Nginx.answering('around');
  await using nginx = await Nginx.proxy('measured', upstream.url);
  const api = `${upstream.url}/v1`;
  await using plain = await relayBefore(api);
  await using pinned = await relayBefore(api, pins);
  await using portkey = await startPortkey(api);
  const peers: Readonly<Record<string, Peer>> = {
    direct: { url: api, pid: null },
    nginx: { url: `${nginx.url}/v1`, pid: nginx.pid },
    relay: { url: `${plain.url}/v1`, pid: plain.pid },
    'relay with pins': { url: `${pinned.url}/v1`, pid: pinned.pid },
    Portkey: portkey,
  };
  for (const peer of Object.values(peers)) await wrk({ ...peer, connections: 64, seconds: 2 }); // what is compiled is compiled
  const figures: Figure[] = [];
  const goals: Goal[] = [];
  for (const connections of [1, 64, 512]) {
    const results: Record<string, WrkResult[]> = {};
    const perCall: Record<string, number[]> = {};
    const variant = (name: string, peer: Peer) => async (): Promise<number> => {
      const before = peer.pid === null ? 0 : processorMs(peer.pid);
      const result = await wrk({ ...peer, connections, seconds });
      const ms = peer.pid === null ? 0 : processorMs(peer.pid) - before;
      (results[name] ??= []).push(result);
      (perCall[name] ??= []).push((1_000 * ms) / (result.perSecond * seconds));
      return result.perSecond;
    };
    const rates = await interleaved(
      rounds,
      Object.fromEntries(Object.entries(peers).map(([name, peer]) => [name, variant(name, peer)])),
    );
    const of = (name: string, what: (result: WrkResult) => number): number =>
      median((results[name] ?? []).map(what));
    const rate = (name: string): number => median(rates[name] ?? []);
    for (const name of Object.keys(peers)) {
      const title = `${connections} connections, ${name}`;
      console.log(`${title}: ${rate(name).toFixed(0)} calls/s`);
      figures.push({ name: title, value: rate(name), unit: 'calls/s' });
      if (name === 'direct') continue;
      figures.push(
        {
          name: `${title}: added p50`,
          value: of(name, (r) => r.p50Ms) - of('direct', (r) => r.p50Ms),
          unit: 'ms',
        },
        {
          name: `${title}: added p99`,
          value: of(name, (r) => r.p99Ms) - of('direct', (r) => r.p99Ms),
          unit: 'ms',
        },
        { name: `${title}: processor time`, value: median(perCall[name] ?? []), unit: 'µs/call' },
      );
    }
    const broken = ['relay', 'relay with pins'].flatMap((name) => results[name] ?? []);
    goals.push({
      name: `${connections} connections: calls that broke`,
      ...{ measured: broken.reduce((sum, one) => sum + one.broken, 0), limit: 0 },
      ...{ direction: 'at most', unit: 'calls' },
    });
    if (connections === 1) continue;
    const over = (name: string, peer: string, limit: number): Goal => ({
      name: `${connections} connections: ${name} over ${peer}`,
      ...{ measured: rate(name) / rate(peer), limit, direction: 'at least', unit: '×' },
    });
    goals.push(
      over('relay', 'nginx', 0.35),
      over('relay with pins', 'nginx', 0.25),
      over('relay', 'Portkey', 30),
    );
  }
  return { figures, goals };
}

async function streamedCalls(): Promise<Results> {
  const spacing = [String(eventsPerStream), String(eventEveryMs)];
  await using upstream = await ListeningProcess.start([part('upstream'), ...spacing], around);
  await using nginx = await Nginx.proxy('measured', upstream.url);
  await using relay = await relayBefore(upstream.url);
  const peers: Readonly<Record<'nginx' | 'relay', Peer>> = {
    nginx: { url: nginx.url, pid: nginx.pid },
    relay: { url: relay.url, pid: relay.pid },
  };
  const results: Record<'nginx' | 'relay', CallsResult[]> = { nginx: [], relay: [] };
  const variant = (name: 'nginx' | 'relay') => async (): Promise<number> => {
    const { url, pid } = peers[name];
    const before = processorMs(pid ?? 0);
    const task: CallsTask = {
      ...{ url, count: streams, concurrency: streams, isStreamed: true },
      events: eventsPerStream,
    };
    results[name].push(await runPart<CallsResult>(part('calls'), task, around));
    return (1_000 * (processorMs(pid ?? 0) - before)) / (streams * eventsPerStream);
  };
  const perEvent = await interleaved(rounds, { nginx: variant('nginx'), relay: variant('relay') });
  const late = (name: 'nginx' | 'relay'): number => median(results[name].map((r) => r.p99Ms));
  const title = `${streams} streams`;
  const figures = (['nginx', 'relay'] as const).flatMap((name): Figure[] => [
    { name: `${title}, ${name}: an event`, value: median(perEvent[name]), unit: 'µs' },
    { name: `${title}, ${name}: an event is late by p99`, value: late(name), unit: 'ms' },
  ]);
  const goals: Goal[] = [
    {
      name: `${title}: processor time per event over nginx`,
      ...{ measured: median(perEvent.relay) / median(perEvent.nginx), limit: 2.7 },
      ...{ direction: 'at most', unit: '×' },
    },
    {
      name: `${title}: p99 of how late events are, beyond nginx`,
      ...{ measured: late('relay') - late('nginx'), limit: 10, direction: 'at most', unit: 'ms' },
    },
    {
      name: `${title}: incomplete ones`,
      ...{ measured: results.relay.reduce((sum, { broken }) => sum + broken, 0), limit: 0 },
      ...{ direction: 'at most', unit: 'streams' },
    },
  ];
  return { figures, goals };
}
