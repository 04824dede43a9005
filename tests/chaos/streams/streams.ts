/**
 * Rollouts that are live at once, each with a stream, while others are ended and begun: what clients, control calls, the server's own numbers and the kernel see of
 * it. Server, agents and upstream are processes of their own.
 */
import { fork, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, readlink, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { Pool } from 'undici';
import { seededRandom } from '../../support/random.ts';
import { startServeProcess, type ServeProcess } from '../../support/serve-process.ts';
import type { AgentsReport, RouteLine, ToAgents } from './agents.ts';

export interface StreamsOptions {
  readonly workers: number;
  readonly live: number;
  readonly ms: number;
  /** Rollouts that are ended in a second, each followed by a new one. */
  readonly abortsPerSecond: number;
  readonly eventEveryMs: number;
  readonly eventsPerStream: number;
  readonly seed: number;
  /** All are live for so long before anything is measured. */
  readonly warmMs: number;
  /** How long the server has to be rid of everything. */
  readonly settleMs: number;
  /** See `serve-streams.ts`. */
  readonly variant?: 'leaky';
  readonly onSample?: (sample: Sample) => void;
}

export interface Sample {
  readonly atMs: number;
  /** Resident memory in MiB: of the server, then of each process of the gateway. */
  readonly rssMb: readonly number[];
  /** What the event loops of the same were late in the seconds before, in ms. */
  readonly lag: readonly Lag[];
}

export interface Lag {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly max: number;
}

export type ControlCall = 'submit' | 'abort' | 'status' | 'health' | 'data health';

export interface StreamsEvidence {
  readonly agents: AgentsReport;
  readonly leastOpen: number;
  readonly aborts: number;
  /** Answers that were not what is expected of them. */
  readonly refusals: readonly string[];
  readonly controlMs: Readonly<Record<ControlCall, readonly number[]>>;
  readonly samples: readonly Sample[];
  /** When everything was ended. */
  readonly left: {
    readonly streams: number;
    readonly upstreamStreams: number;
    readonly routes: number;
    readonly calls: number;
    readonly captures: number;
    /** Sockets, more than before the first rollout. */
    readonly sockets: number;
  };
  readonly restarts: number;
  /** What the server has printed. */
  readonly printed: string;
}

const here = (name: string): string => path.join(import.meta.dirname, name);
/** Our own connections are not to be counted. */
const brief = { keepAliveTimeout: 500, keepAliveMaxTimeout: 500 };
const submittedAtOnce = 32;

export async function runStreams(options: StreamsOptions): Promise<StreamsEvidence> {
  const stateDir = await mkdtemp(path.join(os.tmpdir(), 'slipway-streams-'));
  try {
    await using upstream = await Upstream.start(options);
    await using agents = new AgentsProcess();
    await using server = await startServeProcess(flagsFor(options), {
      stateDir,
      program: [here('serve-streams.ts')],
      ...(options.variant !== undefined && { variables: { STREAMS_VARIANT: options.variant } }),
    });
    const lines = createInterface({ input: server.child.stdout! });
    lines.on('line', (line) => {
      const route = JSON.parse(line) as Partial<RouteLine>;
      if (route.rolloutId !== undefined) agents.tell({ kind: 'begin', route: route as RouteLine });
    });
    return await new StreamsRun(options, { upstream, agents, server, stateDir }).run();
  } finally {
    await rm(stateDir, { recursive: true, force: true });
  }
}

function flagsFor({ workers, live }: StreamsOptions): readonly string[] {
  return [
    ...['--backend', 'null', '--data-port', '0', '--gateway-workers', String(workers)],
    ...['--max-concurrent', String(live), '--max-queue-depth', String(live)],
    ...['--shutdown-drain-sec', '0'],
  ];
}

interface Processes {
  readonly upstream: Upstream;
  readonly agents: AgentsProcess;
  readonly server: ServeProcess;
  readonly stateDir: string;
}

class StreamsRun {
  readonly #options: StreamsOptions;
  readonly #processes: Processes;
  readonly #random: () => number;
  readonly #control: Pool;
  readonly #data: Pool;
  readonly #live: string[] = [];
  readonly #refusals: string[] = [];
  readonly #samples: Sample[] = [];
  #controlMs = noTimes();
  #submitted = 0;
  #aborts = 0;
  #leastOpen = Infinity;
  #restarts = 0;

  constructor(options: StreamsOptions, processes: Processes) {
    this.#options = options;
    this.#processes = processes;
    this.#random = seededRandom(options.seed);
    const { url, dataUrl } = processes.server;
    this.#control = new Pool(url, { connections: submittedAtOnce, ...brief });
    this.#data = new Pool(dataUrl, { connections: 1, ...brief });
  }

  async run(): Promise<StreamsEvidence> {
    const { live, ms, abortsPerSecond, warmMs, settleMs } = this.#options;
    const { agents, server } = this.#processes;
    const before = await this.#quietSockets(Infinity);
    await this.#fill(live);
    await delay(warmMs);
    // What it took to begin them is not what it takes to have them.
    await this.#metrics();
    const controlMs = this.#newTimes();
    const until = performance.now() + ms;
    const aborting = this.#every(1_000 / abortsPerSecond, until, () => this.#replaceOne());
    const looking = this.#every(100, until, () => this.#look());
    const sampling = this.#every(5_500, until, () =>
      this.#sample(ms - (until - performance.now())),
    );
    const counting = this.#every(500, until, async () => {
      const { open } = await agents.report();
      this.#leastOpen = Math.min(this.#leastOpen, open);
    });
    await Promise.all([aborting, looking, sampling, counting]);
    await this.#sample(ms);
    // Ending all of them at once is nobody's usual work.
    this.#newTimes();
    while (this.#live.length > 0)
      await Promise.all(this.#live.splice(0, submittedAtOnce).map((id) => this.#abort(id)));
    const settled = performance.now() + settleMs;
    let left = await this.#left(before);
    while (performance.now() < settled && Object.values(left).some((count) => count > 0)) {
      await delay(250);
      left = await this.#left(before);
    }
    await Promise.all([this.#control.close(), this.#data.close()]);
    const report = await agents.report();
    return {
      ...{ agents: report, left, aborts: this.#aborts, refusals: this.#refusals },
      ...{ leastOpen: this.#leastOpen, controlMs, samples: this.#samples },
      ...{ restarts: this.#restarts, printed: server.errors() },
    };
  }

  /** Not all at once: nobody submits a thousand rollouts in a moment. */
  async #fill(live: number): Promise<void> {
    const { agents } = this.#processes;
    for (let begun = 0; begun < live; begun += submittedAtOnce) {
      const group = Math.min(submittedAtOnce, live - begun);
      await Promise.all(Array.from({ length: group }, () => this.#submit()));
    }
    for (let open = 0; open < live; { open } = await agents.report()) await delay(20);
  }

  /** Times are kept in a new place from here on. */
  #newTimes(): Record<ControlCall, number[]> {
    this.#controlMs = noTimes();
    return this.#controlMs;
  }

  async #every(ms: number, until: number, act: () => Promise<void>): Promise<void> {
    for (let next = performance.now() + ms; next < until; next += ms) {
      const waitMs = next - performance.now();
      if (waitMs > 0) await delay(waitMs);
      await act();
    }
  }

  async #replaceOne(): Promise<void> {
    const at = Math.floor(this.#random() * this.#live.length);
    const [id] = this.#live.splice(at, 1);
    if (id !== undefined) await this.#abort(id);
    await this.#submit();
  }

  async #submit(): Promise<void> {
    this.#submitted += 1;
    const id = `s-${this.#submitted}`;
    const { status } = await this.#timed('submit', 'POST', '/rollout', {
      ...{ rollout_id: id, initial_messages: [{ role: 'user', content: 'go on' }] },
      chat_completions_url: `${this.#processes.upstream.url}/v1`,
      completion_callback_url: 'http://127.0.0.1:9/completion',
      metadata: { null: { duration_ms: 86_400_000 } },
    });
    if (status === 202) this.#live.push(id);
    else this.#refusals.push(`submit ${id}: ${status}`);
  }

  async #abort(id: string): Promise<void> {
    const { agents } = this.#processes;
    agents.tell({ kind: 'ending', rolloutId: id });
    const answer = await this.#timed('abort', 'POST', '/rollout/cancel', { ids: [id] });
    const isEnded = answer.status === 200 && answer.text.includes('"cancelled_');
    if (!isEnded) this.#refusals.push(`abort ${id}: ${answer.status} ${answer.text}`);
    this.#aborts += 1;
    agents.tell({ kind: 'ended', rolloutId: id });
  }

  async #look(): Promise<void> {
    const id = this.#live[Math.floor(this.#random() * this.#live.length)];
    const looks = [
      this.#timed('health', 'GET', '/health'),
      this.#timed('data health', 'GET', '/health'),
      ...(id === undefined ? [] : [this.#timed('status', 'GET', `/rollout/${id}/status`)]),
    ];
    for (const { status } of await Promise.all(looks))
      if (status !== 200) this.#refusals.push(`look: ${status}`);
  }

  async #timed(
    call: ControlCall,
    method: 'GET' | 'POST',
    target: string,
    document?: object,
  ): Promise<{ readonly status: number; readonly text: string }> {
    const pool = call === 'data health' ? this.#data : this.#control;
    const from = performance.now();
    const { statusCode, body } = await pool.request({
      ...{ method, path: target, headersTimeout: 60_000 },
      ...(document !== undefined && {
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(document),
      }),
    });
    const text = await body.text();
    this.#controlMs[call].push(performance.now() - from);
    return { status: statusCode, text };
  }

  async #sample(atMs: number): Promise<void> {
    const numbers = await this.#metrics();
    const pids = await this.#pids();
    const workers = pids.slice(1).map((_, index) => lagOf(numbers, String(index + 1)));
    const sample: Sample = {
      atMs,
      rssMb: await Promise.all(pids.map((pid) => residentMb(pid))),
      lag: [lagOf(numbers, null), ...workers],
    };
    this.#samples.push(sample);
    this.#restarts = sumOf(numbers, 'slipway_gateway_worker_restarts_total');
    this.#options.onSample?.(sample);
  }

  async #metrics(): Promise<ReadonlyMap<string, number>> {
    const { body } = await this.#control.request({ method: 'GET', path: '/metrics' });
    const lines = (await body.text()).split('\n').filter((line) => !line.startsWith('#'));
    return new Map(
      lines.map((line) => {
        const at = line.lastIndexOf(' ');
        return [line.slice(0, at), Number(line.slice(at + 1))];
      }),
    );
  }

  /** Of the server and its gateway. */
  async #pids(): Promise<readonly number[]> {
    const { server, stateDir } = this.#processes;
    const noted = await readFile(path.join(stateDir, 'server/gateway.json'), 'utf8').catch(
      () => '[]',
    );
    return [server.child.pid!, ...(JSON.parse(noted) as { pid: number }[]).map(({ pid }) => pid)];
  }

  async #left(before: number): Promise<StreamsEvidence['left']> {
    const { agents, upstream, stateDir } = this.#processes;
    const numbers = await this.#metrics();
    const captures = await readdir(path.join(stateDir, 'server/model-calls')).catch(() => []);
    return {
      streams: (await agents.report()).open,
      upstreamStreams: await upstream.open(),
      routes: sumOf(numbers, 'slipway_gateway_routes'),
      calls: sumOf(numbers, 'slipway_gateway_calls_running'),
      captures: captures.length,
      sockets: Math.max(0, (await this.#quietSockets(before)) - before),
    };
  }

  /** When our own connections are gone; as soon as there are no more than `enough`. */
  async #quietSockets(enough: number): Promise<number> {
    const until = performance.now() + Math.min(3_000, this.#options.settleMs);
    for (;;) {
      const pids = await this.#pids();
      const counts = await Promise.all(pids.map((pid) => socketsOf(pid)));
      const count = counts.reduce((sum, each) => sum + each, 0);
      if (count <= enough || performance.now() > until) return count;
      await delay(100);
    }
  }
}

function noTimes(): Record<ControlCall, number[]> {
  return { submit: [], abort: [], status: [], health: [], 'data health': [] };
}

class Upstream implements AsyncDisposable {
  readonly url: string;
  readonly #child: ChildProcess;
  readonly #answers: ((line: string) => void)[] = [];

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.url = url;
    createInterface({ input: child.stdout! }).on('line', (line) => this.#answers.shift()?.(line));
  }

  static async start(options: StreamsOptions): Promise<Upstream> {
    const { eventsPerStream, eventEveryMs } = options;
    const args = [here('chat-streams.ts'), String(eventsPerStream), String(eventEveryMs)];
    const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    return new Upstream(child, (JSON.parse(line.toString()) as { url: string }).url);
  }

  async open(): Promise<number> {
    const line = await new Promise<string>((resolve) => {
      this.#answers.push(resolve);
      this.#child.stdin?.write('\n');
    });
    return (JSON.parse(line) as { open: number }).open;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }
}

class AgentsProcess implements AsyncDisposable {
  readonly #child = fork(here('agents-process.ts'), [], { execArgv: [] });
  #asked: Promise<AgentsReport> | null = null;

  tell(message: ToAgents): void {
    this.#child.send(message);
  }

  async report(): Promise<AgentsReport> {
    this.#asked ??= once(this.#child, 'message').then(([report]) => {
      this.#asked = null;
      return report as AgentsReport;
    });
    this.tell({ kind: 'report' });
    return await this.#asked;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await gone;
  }
}

async function residentMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8').catch(() => '');
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1] ?? 0) / 1_024;
}

async function socketsOf(pid: number): Promise<number> {
  const dir = `/proc/${pid}/fd`;
  const links = await Promise.all(
    (await readdir(dir).catch(() => [])).map((fd) => readlink(path.join(dir, fd)).catch(() => '')),
  );
  return links.filter((link) => link.startsWith('socket:')).length;
}

/** `worker` null = the server's. */
function lagOf(numbers: ReadonlyMap<string, number>, worker: string | null): Lag {
  const of = (quantile: string): number => {
    const name =
      worker === null
        ? `slipway_event_loop_lag_seconds{quantile="${quantile}"}`
        : `slipway_gateway_worker_event_loop_lag_seconds{worker="${worker}",quantile="${quantile}"}`;
    return 1_000 * (numbers.get(name) ?? Number.NaN);
  };
  return { p50: of('p50'), p90: of('p90'), p99: of('p99'), max: of('max') };
}

function sumOf(numbers: ReadonlyMap<string, number>, name: string): number {
  return [...numbers]
    .filter(([series]) => series.startsWith(`${name}{`))
    .reduce((sum, [, value]) => sum + value, 0);
}
