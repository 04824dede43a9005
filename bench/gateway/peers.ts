/**
 * The gateway beside other programs that pass model calls on, each alone on one core, in interleaved rounds: nginx, Portkey's gateway, LiteLLM. Whole answers at
 * 1, 64 and 512 connections; 256 streams at once, by processor time per event and by how late events are. What has no goal is measured once; so are bare sockets in
 * Node, by the processor time of a call: what no relay in one process of it can do without.
 */
import { mkdtempDisposable } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { noRules, type RouteRules } from '../../src/wire/rollout/route-rules.ts';
import type { Figure, Goal } from '../report.ts';
import { median } from '../samples.ts';
import { ListeningProcess, runPart } from '../server/processes.ts';
import { isShort, sized } from '../size.ts';
import type { CallsResult, CallsTask } from './calls.ts';
import { memoryBytes, onCore, processorMs } from './cores.ts';
import { startLitellm } from './litellm.ts';
import { answerWithTokens, Nginx } from './nginx.ts';
import { portkeyNodes, startPortkey } from './portkey.ts';
import { wrk, type WrkResult } from './wrk.ts';

const rounds = sized(3, 1);
const seconds = Number(process.env['SECONDS_PER_RUN'] ?? sized('4', '1'));
const streams = 256;
const eventEveryMs = 25;
const eventsPerStream = Math.min(200, Math.ceil((seconds * 1_000) / eventEveryMs));

const part = (name: string): string => path.join(import.meta.dirname, `${name}.ts`);
const measured = { before: onCore('measured', []) };
const around = { before: onCore('around', []) };

/** Whom calls go through. */
interface Peer {
  /** Of the API, with `/v1`. */
  readonly url: string;
  readonly pid: number | null;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: as often as the others. */
  readonly rounds?: number;
}

type Peers = Readonly<Record<string, Peer>>;

export interface Results {
  readonly figures: readonly Figure[];
  readonly goals: readonly Goal[];
}

async function relayBefore(
  upstreamUrl: string,
  options: { readonly rules?: RouteRules; readonly captureDir?: string } = {},
): Promise<ListeningProcess> {
  const { rules = noRules, captureDir } = options;
  const argv = [part('relay'), upstreamUrl, JSON.stringify(rules)];
  return await ListeningProcess.start(
    captureDir === undefined ? argv : [...argv, captureDir],
    measured,
  );
}

/** What a trainer fixes. */
const pins: RouteRules = { ...noRules, pins: { temperature: 1, top_p: 1, top_k: -1 } };
const portkeyOfImage = `Portkey on ${portkeyNodes.image}, its image's`;
const bareSockets = 'bare sockets in Node';
const portkeyOnOurs = `Portkey on ${portkeyNodes.ours}, ours`;

export async function wholeCalls(): Promise<Results> {
  await using upstream = await Nginx.answering('around');
  await using nginx = await Nginx.proxy('measured', upstream.url);
  const api = `${upstream.url}/v1`;
  await using bare = await ListeningProcess.start([part('bare'), upstream.url], measured);
  await using plain = await relayBefore(api);
  await using pinned = await relayBefore(api, { rules: pins });
  await using ofImage = await startPortkey(api, 'image');
  await using onOurs = isShort ? null : await startPortkey(api, 'ours');
  await using litellm = isShort ? null : await startLitellm(api);
  const peers: Peers = {
    direct: { url: api, pid: null },
    nginx: { url: `${nginx.url}/v1`, pid: nginx.pid },
    relay: { url: `${plain.url}/v1`, pid: plain.pid },
    'relay with pins': { url: `${pinned.url}/v1`, pid: pinned.pid },
    [portkeyOfImage]: ofImage,
    // These take longest to start, and no goal is theirs.
    ...(onOurs !== null && { [portkeyOnOurs]: { ...onOurs, rounds: 1 } }),
    ...(litellm !== null && { LiteLLM: { ...litellm, rounds: 1 } }),
    [bareSockets]: { url: `${bare.url}/v1`, pid: bare.pid, rounds: 1 },
  };
  await warmed(peers);
  const figures: Figure[] = [];
  const goals: Goal[] = [];
  for (const connections of [1, 64, 512]) {
    const rates = await ratesOf(peers, connections, figures);
    goals.push(rates.unbroken('relay', 'relay with pins'));
    if (connections === 1) continue;
    goals.push(
      rates.over('relay', 'nginx', 0.35),
      rates.over('relay with pins', 'nginx', 0.25),
      rates.over('relay', portkeyOfImage, 30),
    );
    if (onOurs === null) continue;
    figures.push({
      name: `${connections} connections: relay over ${portkeyOnOurs}`,
      ...{ value: rates.of('relay') / rates.of(portkeyOnOurs), unit: '×' },
    });
  }
  return { figures, goals };
}

/** Answers with ids and log-probabilities, of which every call is kept; nginx passes the same answers on. */
export async function capturedCalls(): Promise<Results> {
  await using upstream = await Nginx.answering('around', answerWithTokens);
  await using nginx = await Nginx.proxy('measured', upstream.url);
  await using dir = await mkdtempDisposable(path.join(os.tmpdir(), 'slipway-bench-capture-'));
  const api = `${upstream.url}/v1`;
  await using relay = await relayBefore(api, { captureDir: dir.path });
  const peers: Peers = {
    'direct, with tokens': { url: api, pid: null },
    'nginx, with tokens': { url: `${nginx.url}/v1`, pid: nginx.pid },
    'relay with capture': { url: `${relay.url}/v1`, pid: relay.pid },
  };
  await warmed(peers);
  const figures: Figure[] = [];
  const goals: Goal[] = [];
  for (const connections of [1, 64]) {
    const rates = await ratesOf(peers, connections, figures);
    goals.push(rates.unbroken('relay with capture'));
    figures.push({
      name: `${connections} connections: relay with capture over nginx, with tokens`,
      ...{ value: rates.of('relay with capture') / rates.of('nginx, with tokens'), unit: '×' },
    });
  }
  return { figures, goals };
}

/** What is compiled is compiled. */
async function warmed(peers: Peers): Promise<void> {
  for (const peer of Object.values(peers))
    await wrk({ ...peer, connections: 64, seconds: sized(2, 1) });
}

interface Rates {
  of(name: string): number;
  over(name: string, peer: string, limit: number): Goal;
  unbroken(...names: readonly string[]): Goal;
}

/** Round by round, so that drift of the machine touches all alike. */
async function ratesOf(peers: Peers, connections: number, figures: Figure[]): Promise<Rates> {
  const results: Record<string, WrkResult[]> = {};
  const perCall: Record<string, number[]> = {};
  for (let round = 0; round < rounds; round += 1)
    for (const [name, peer] of Object.entries(peers)) {
      if (round >= (peer.rounds ?? rounds)) continue;
      const before = peer.pid === null ? 0 : processorMs(peer.pid);
      const result = await wrk({ ...peer, connections, seconds });
      const ms = peer.pid === null ? 0 : processorMs(peer.pid) - before;
      (results[name] ??= []).push(result);
      (perCall[name] ??= []).push((1_000 * ms) / (result.perSecond * seconds));
    }
  const middle = (name: string, what: (result: WrkResult) => number): number =>
    median((results[name] ?? []).map(what));
  const rate = (name: string): number => middle(name, (result) => result.perSecond);
  const direct = Object.keys(peers)[0] ?? '';
  for (const [name, { pid }] of Object.entries(peers)) {
    const title = `${connections} connections, ${name}`;
    const broken = (results[name] ?? []).reduce((sum, one) => sum + one.broken, 0);
    console.log(
      `${title}: ${rate(name).toFixed(0)} calls/s${broken > 0 ? `, ${broken} broke` : ''}`,
    );
    figures.push({ name: title, value: rate(name), unit: 'calls/s' });
    if (broken > 0) figures.push({ name: `${title}: broke`, value: broken, unit: 'calls' });
    // What does not survive so many connections has no time.
    if (pid === null || rate(name) === 0) continue;
    const added = (what: (result: WrkResult) => number): number =>
      middle(name, what) - middle(direct, what);
    figures.push(
      { name: `${title}: added p50`, value: added((result) => result.p50Ms), unit: 'ms' },
      { name: `${title}: added p99`, value: added((result) => result.p99Ms), unit: 'ms' },
      { name: `${title}: processor time`, value: median(perCall[name] ?? []), unit: 'µs/call' },
    );
  }
  return {
    of: rate,
    over: (name, peer, limit) => ({
      name: `${connections} connections: ${name} over ${peer}`,
      ...{ measured: rate(name) / rate(peer), limit, direction: 'at least', unit: '×' },
    }),
    unbroken: (...names) => ({
      name: `${connections} connections: calls of ${names.join(', ')} that broke`,
      measured: names
        .flatMap((name) => results[name] ?? [])
        .reduce((sum, { broken }) => sum + broken, 0),
      ...{ limit: 0, direction: 'at most', unit: 'calls' },
    }),
  };
}

interface StreamRun extends CallsResult {
  readonly microsPerEvent: number;
  readonly memoryPerStream: number;
}

/** Of LiteLLM a few at a time are asked for: more it does not keep up with on one core. */
const litellmStreams = 16;

export async function streamedCalls(): Promise<Results> {
  const spacing = [String(eventsPerStream), String(eventEveryMs)];
  await using upstream = await ListeningProcess.start([part('upstream'), ...spacing], around);
  await using nginx = await Nginx.proxy('measured', upstream.url);
  await using relay = await relayBefore(upstream.url);
  await using dir = await mkdtempDisposable(path.join(os.tmpdir(), 'slipway-bench-capture-'));
  await using capturing = await relayBefore(upstream.url, { captureDir: dir.path });
  await using portkey = isShort ? null : await startPortkey(upstream.url, 'ours');
  await using litellm = isShort ? null : await startLitellm(upstream.url);
  const peers: Peers = {
    nginx: { url: nginx.url, pid: nginx.pid },
    relay: { url: relay.url, pid: relay.pid },
    'relay with capture': { url: capturing.url, pid: capturing.pid },
    ...(portkey !== null && { [portkeyOnOurs]: { ...portkey, rounds: 1 } }),
    ...(litellm !== null && { LiteLLM: { ...litellm, rounds: 1 } }),
  };
  const runs: Record<string, StreamRun[]> = {};
  for (let round = 0; round < rounds; round += 1)
    for (const [name, peer] of Object.entries(peers)) {
      if (round >= (peer.rounds ?? rounds)) continue;
      (runs[name] ??= []).push(await streamed(peer, name === 'LiteLLM' ? litellmStreams : streams));
    }
  const of = (name: string, what: (run: StreamRun) => number): number =>
    median((runs[name] ?? []).map(what));
  const sum = (name: string): number =>
    (runs[name] ?? []).reduce((broken, run) => broken + run.broken, 0);
  const title = `${streams} streams`;
  const figures = Object.keys(peers).flatMap((name): Figure[] => {
    const count = name === 'LiteLLM' ? litellmStreams : streams;
    const events = count * eventsPerStream;
    const row = `${count} streams, ${name}`;
    const incomplete = { name: `${row}: incomplete`, value: sum(name), unit: 'streams' };
    // What brings no stream to its end has no time.
    if (sum(name) === count * (peers[name]?.rounds ?? rounds)) return [incomplete];
    return [
      { name: row, value: of(name, (run) => events / run.seconds), unit: 'events/s' },
      { name: `${row}: an event`, value: of(name, (run) => run.microsPerEvent), unit: 'µs' },
      { name: `${row}: late by p50`, value: of(name, (run) => run.p50Ms), unit: 'ms' },
      { name: `${row}: late by p99`, value: of(name, (run) => run.p99Ms), unit: 'ms' },
      { name: `${row}: memory`, value: of(name, (run) => run.memoryPerStream), unit: 'KiB/stream' },
      incomplete,
    ];
  });
  const goals: Goal[] = [
    {
      name: `${title}: processor time per event over nginx`,
      measured: of('relay', (run) => run.microsPerEvent) / of('nginx', (run) => run.microsPerEvent),
      ...{ limit: 2.7, direction: 'at most', unit: '×' },
    },
    {
      name: `${title}: p99 of how late events are, beyond nginx`,
      measured: of('relay', (run) => run.p99Ms) - of('nginx', (run) => run.p99Ms),
      ...{ limit: 10, direction: 'at most', unit: 'ms' },
    },
    ...['relay', 'relay with capture'].map((name): Goal => {
      const counted = { measured: sum(name), limit: 0, unit: 'streams' };
      return { name: `${title}, ${name}: incomplete ones`, ...counted, direction: 'at most' };
    }),
  ];
  return { figures, goals };
}

async function streamed({ url, pid, headers = {} }: Peer, count: number): Promise<StreamRun> {
  const before = { ms: processorMs(pid ?? 0), bytes: memoryBytes(pid ?? 0) };
  let most = before.bytes;
  const looking = setInterval(() => (most = Math.max(most, memoryBytes(pid ?? 0))), 200);
  const task: CallsTask = {
    ...{ url, count, concurrency: count, isStreamed: true, headers },
    events: eventsPerStream,
  };
  try {
    const result = await runPart<CallsResult>(part('calls'), task, around);
    const micros = 1_000 * (processorMs(pid ?? 0) - before.ms);
    return {
      ...result,
      microsPerEvent: micros / (count * eventsPerStream),
      memoryPerStream: (most - before.bytes) / count / 1_024,
    };
  } finally {
    clearInterval(looking);
  }
}
