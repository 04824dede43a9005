/**
 * A flood of submissions from three tenants against a server that can take only some of them, and what is seen of it: from the clients, from the receiver
 * of callbacks, from somebody who asks for health and cancels all the time, and from the server's own counts.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { Pool } from 'undici';
import type { Capacity } from '../../../src/wire/rollout/health.ts';
import { RolloutService, type QueueKind } from '../../support/rollout-service.ts';
import { unusedModelUrl } from '../unused-model.ts';
import { mostAtOnce } from './execution-sights.ts';

export const tenantWeights: Readonly<Record<string, number>> = { a: 1, b: 1, c: 2 };

export interface FloodOptions {
  /** Default: the server's memory. */
  readonly queue?: QueueKind;
  readonly submissions: number;
  /** So many of the clients, spread over all, come back until they are accepted; the others go away for good when they are refused. Default: all come back. */
  readonly patient?: number;
  /** All are submitted for the first time within this. */
  readonly overMs: number;
  readonly maxConcurrent: number;
  readonly maxQueueDepth: number;
  readonly backendFlags: readonly string[];
  /** More of the configuration file. */
  readonly config?: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** See `serve-counted.ts`. */
  readonly variant?: 'loose' | 'unweighted';
  /** Rollouts before it, as many at a time as may run. */
  readonly warmUps: number;
  /** Every so many rollouts one is cancelled as soon as it is accepted. */
  readonly cancelEvery: number;
  /** Between two looks at the health. */
  readonly pauseMs: number;
  readonly leastReads: number;
  readonly limitMs: number;
}

export interface ClientsTask {
  readonly url: string;
  readonly callbackUrl: string;
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly clients: readonly {
    readonly id: string;
    readonly tenant: string;
    readonly atMs: number;
    readonly isPatient: boolean;
  }[];
}

export interface ClientsReport {
  /** Every client was accepted, or went away. */
  readonly isDone: boolean;
  readonly refusedMs: readonly number[];
  /** What they were told with every refusal. */
  readonly retryAfterS: readonly number[];
  readonly otherStatuses: readonly number[];
  /** Clients that were refused and do not come back. */
  readonly wentAway: number;
  readonly errors: readonly string[];
  /** From when on every tenant had patient clients that were sent away, until one had none left outside; wall clock in ms. */
  readonly contestedFrom: number | null;
  readonly contestedTo: number | null;
}

export type ClientNews = { readonly accepted: string } | { readonly report: ClientsReport };
export type ReceiverNews =
  | { readonly url: string }
  | { readonly channel: string; readonly id: string; readonly atMs: number };

/** What the server counted beside its own figures. */
export interface ServerCounts {
  readonly capacityReads: number;
  /** Reads that showed another number than there were reservations. */
  readonly mismatches: number;
  readonly mostHeld: number;
  readonly mostQueued: number;
  /** By tenant, while every tenant had some waiting. */
  readonly contestedStarts: Record<string, number>;
}

export interface FloodEvidence {
  readonly options: FloodOptions;
  readonly clients: ClientsReport;
  readonly capacities: readonly Capacity[];
  readonly healthMs: readonly number[];
  readonly cancelMs: readonly number[];
  readonly badProbes: readonly string[];
  /** Ends by tenant while every tenant had clients outside. */
  readonly contestedEnds: Readonly<Record<string, number>>;
  readonly accepted: number;
  readonly cancelled: number;
  readonly ended: number;
  /** Accepted, not cancelled, and without a last callback. */
  readonly lost: readonly string[];
  readonly server: ServerCounts | null;
  /** At a time, as those say that execute. */
  readonly mostExecuting: number;
  readonly seconds: number;
}

type SeenByClients = Omit<FloodEvidence, 'server' | 'mostExecuting'>;

/** What a client submits. */
export function rolloutBody(
  id: string,
  of: { readonly callbackUrl: string; readonly metadata: Readonly<Record<string, unknown>> },
): Readonly<Record<string, unknown>> {
  return {
    rollout_id: id,
    initial_messages: [{ role: 'user', content: 'work' }],
    chat_completions_url: unusedModelUrl,
    completion_callback_url: `${of.callbackUrl}/completion/${id}`,
    grader_callback_url: `${of.callbackUrl}/grader/${id}`,
    metadata: of.metadata,
    label: 'yes',
  };
}

/** Questions of one kind that wait for their answer. */
const mostOpen = 32;

const ownProgram = (name: string): readonly string[] => [path.join(import.meta.dirname, name)];

export async function runFlood(options: FloodOptions): Promise<FloodEvidence> {
  const dir = await mkdtemp(path.join(tmpdir(), 'slipway-flood-'));
  const tenants = Object.entries(tenantWeights).map(
    ([name, weight]) => `[tenants.${name}]\nid_prefix = "${name}::"\nweight = ${weight}\n`,
  );
  const config = path.join(dir, 'slipway.toml');
  await writeFile(config, [options.config ?? '', ...tenants].join('\n'));
  try {
    const sights = path.join(dir, 'sights');
    await writeFile(sights, '');
    const { variant, maxConcurrent, maxQueueDepth } = options;
    await using service = await RolloutService.start({
      ...{ queue: options.queue ?? 'memory', stateDir: dir, maxConcurrent },
      flags: ['--config', config, ...options.backendFlags],
      frontFlags: ['--data-port', '0', '--max-queue-depth', String(maxQueueDepth)],
      program: ownProgram('serve-counted.ts'),
      workerProgram: ownProgram('worker-counted.ts'),
      variables: { FLOOD_SIGHTS: sights, ...(variant !== undefined && { FLOOD_VARIANT: variant }) },
    });
    const server = service.front;
    let said = '';
    server.child.stdout?.on('data', (text: Buffer) => (said += text.toString()));
    const seen = await new Flood(server.url, options).run();
    await server.stop();
    const line = said.split('\n').find((one) => one.startsWith('{"counts"'));
    const counts =
      line === undefined ? null : (JSON.parse(line) as { counts: ServerCounts }).counts;
    const mostExecuting = mostAtOnce(await readFile(sights, 'utf8'));
    return { ...seen, server: counts, mostExecuting };
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

class Flood {
  readonly #url: string;
  readonly #options: FloodOptions;
  readonly #capacities: Capacity[] = [];
  readonly #healthMs: number[] = [];
  readonly #cancelMs: number[] = [];
  readonly #badProbes: string[] = [];
  /** When, by id. */
  readonly #acceptedAt = new Map<string, number>();
  readonly #cancelled = new Set<string>();
  readonly #endedAt = new Map<string, number>();
  readonly #toCancel: string[] = [];
  #report: ClientsReport | null = null;

  constructor(url: string, options: FloodOptions) {
    this.#url = url;
    this.#options = options;
  }

  async run(): Promise<SeenByClients> {
    const began = performance.now();
    const { submissions, limitMs, leastReads } = this.#options;
    const receiver = new Worker(path.join(import.meta.dirname, 'receiver.ts'));
    const callbackUrl = await this.#listen(receiver);
    const pool = new Pool(this.#url, { connections: 2 * mostOpen, pipelining: 1 });
    await this.#warmUp(pool, callbackUrl);
    const clients = new Worker(path.join(import.meta.dirname, 'clients.ts'), {
      workerData: this.#task(callbackUrl, submissions),
    });
    clients.on('message', (news: ClientNews) => this.#hear(news));
    const isOver = (): boolean =>
      (this.#report?.isDone === true &&
        this.#lost().length === 0 &&
        this.#capacities.length >= leastReads) ||
      performance.now() - began > limitMs;
    const { pauseMs } = this.#options;
    await Promise.all([
      this.#steadily(pauseMs, isOver, () => this.#watch(pool)),
      this.#steadily(2 * pauseMs, isOver, () => this.#cancelOne(pool)),
    ]);
    await pool.destroy();
    await Promise.all([receiver.terminate(), clients.terminate()]);
    return this.#evidence((performance.now() - began) / 1_000);
  }

  /** A server that has just started compiles what it runs, and starts threads: that is not what a flood meets. All places are used once. */
  async #warmUp(pool: Pool, callbackUrl: string): Promise<void> {
    const { warmUps, maxConcurrent } = this.#options;
    const one = async (id: string): Promise<void> => {
      const body = JSON.stringify(rolloutBody(id, { ...this.#options, callbackUrl }));
      const headers = { 'content-type': 'application/json' };
      const answer = await pool.request({ method: 'POST', path: '/rollout', body, headers });
      await answer.body.dump();
      while (answer.statusCode === 202 && !this.#endedAt.has(id)) await delay(5);
    };
    for (let at = 0; at < warmUps; at += maxConcurrent)
      await Promise.all(
        Array.from({ length: Math.min(maxConcurrent, warmUps - at) }, (_, more) =>
          one(`warm-${at + more}`),
        ),
      );
    this.#endedAt.clear();
  }

  #task(callbackUrl: string, submissions: number): ClientsTask {
    const names = Object.keys(tenantWeights);
    const { overMs, patient = submissions } = this.#options;
    const share = patient / submissions;
    const clients = Array.from({ length: submissions }, (_, at) => {
      const tenant = names[at % names.length]!;
      const turn = Math.floor(at / names.length);
      const isPatient = Math.floor((turn + 1) * share) > Math.floor(turn * share);
      return { id: `${tenant}::${at}`, tenant, atMs: (at * overMs) / submissions, isPatient };
    });
    return { url: this.#url, callbackUrl, metadata: this.#options.metadata, clients };
  }

  async #listen(receiver: Worker): Promise<string> {
    const url = Promise.withResolvers<string>();
    receiver.on('message', (news: ReceiverNews) => {
      if ('url' in news) url.resolve(news.url);
      else if (news.channel === 'grader') this.#endedAt.set(news.id, news.atMs);
    });
    receiver.on('error', url.reject);
    return await url.promise;
  }

  #hear(news: ClientNews): void {
    if ('report' in news) {
      this.#report = news.report;
      return;
    }
    this.#acceptedAt.set(news.accepted, Date.now());
    if (this.#acceptedAt.size % this.#options.cancelEvery === 0) this.#toCancel.push(news.accepted);
  }

  #lost(): readonly string[] {
    return [...this.#acceptedAt.keys()].filter(
      (id) => !this.#endedAt.has(id) && !this.#cancelled.has(id),
    );
  }

  /** Asks at a steady pace, whether the answers before have come or not: a server that stands still is asked all the time, as by others. */
  async #steadily(pauseMs: number, isOver: () => boolean, ask: () => Promise<void>): Promise<void> {
    const open = new Set<Promise<void>>();
    while (!isOver()) {
      if (open.size < mostOpen) {
        const asked = ask().catch((error: unknown) => {
          this.#badProbes.push(String(error));
        });
        open.add(asked);
        void asked.finally(() => open.delete(asked));
      }
      await delay(pauseMs);
    }
    await Promise.all(open);
  }

  async #watch(pool: Pool): Promise<void> {
    const began = performance.now();
    const answer = await pool.request({ method: 'GET', path: '/health' });
    const { capacity } = (await answer.body.json()) as { capacity: Capacity };
    this.#healthMs.push(performance.now() - began);
    if (answer.statusCode !== 200) this.#badProbes.push(`health ${answer.statusCode}`);
    this.#capacities.push(capacity);
  }

  /** Ids that never come, and some that do. */
  async #cancelOne(pool: Pool): Promise<void> {
    const id = this.#toCancel.shift() ?? `nobody-${this.#cancelMs.length}`;
    const began = performance.now();
    const answer = await pool.request({
      ...{ method: 'POST', path: '/rollout/cancel', body: JSON.stringify({ ids: [id] }) },
      headers: { 'content-type': 'application/json' },
    });
    const { dispositions } = (await answer.body.json()) as {
      dispositions: Record<string, string>;
    };
    this.#cancelMs.push(performance.now() - began);
    if (answer.statusCode !== 200) this.#badProbes.push(`cancel ${answer.statusCode}`);
    if (dispositions[id]?.startsWith('cancelled') === true) this.#cancelled.add(id);
  }

  #evidence(seconds: number): SeenByClients {
    const none = { refusedMs: [], retryAfterS: [], otherStatuses: [], errors: [], wentAway: 0 };
    const unknown = { isDone: false, contestedFrom: null, contestedTo: null };
    const clients = this.#report ?? { ...none, ...unknown };
    const { contestedFrom, contestedTo } = clients;
    const contestedEnds = Object.fromEntries(Object.keys(tenantWeights).map((name) => [name, 0]));
    // Who got in before nobody had been sent away had no rival then.
    for (const [id, atMs] of this.#endedAt)
      if (
        contestedFrom !== null &&
        (this.#acceptedAt.get(id) ?? 0) >= contestedFrom &&
        atMs <= (contestedTo ?? 0)
      )
        contestedEnds[id.slice(0, 1)]! += 1;
    return {
      options: this.#options,
      clients,
      capacities: this.#capacities,
      healthMs: this.#healthMs,
      cancelMs: this.#cancelMs,
      badProbes: this.#badProbes,
      contestedEnds,
      accepted: this.#acceptedAt.size,
      cancelled: this.#cancelled.size,
      ended: this.#endedAt.size,
      lost: this.#lost(),
      seconds,
    };
  }
}
