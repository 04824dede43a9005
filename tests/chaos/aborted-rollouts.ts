/**
 * Rollouts whose agents do not want to end, at a server whose backend runs trials; some are cancelled, each in a phase of its own. What a receipt says is
 * looked at the moment it comes: nothing of the rollout may be there any more. The others must not notice.
 */
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  RolloutController,
  type ControllerResult,
} from '../../src/callbacks/rollout-controller.ts';
import type { ReceiptDocument } from '../../src/wire/api/receipt.ts';
import type { RolloutDocument } from '../../src/wire/api/rollout.ts';
import { startEngineProcess } from '../support/engine-process.ts';
import { ownLeftovers } from '../support/own-leftovers.ts';
import { seededRandom } from '../support/random.ts';
import { RolloutService, type QueueKind } from '../support/rollout-service.ts';
import { repositoryDir } from '../support/slipway-cli.ts';
import { hostProcessesWith } from '../conformance/environment/looking.ts';
import { EngineFront } from './engine-front.ts';
import { harborTable, writeTrialTask, type TrialBackend } from './trial-servers.ts';

/** Where a cancellation meets the rollout. */
export const abortPhases = [
  'before',
  'queued',
  'booting',
  'running',
  'verifying',
  'twice',
] as const;
export type AbortPhase = (typeof abortPhases)[number];

export interface AbortedRolloutsOptions {
  /** `native`: terminus-2; `harbor`: a workflow that carries out what the same model says. */
  readonly backend: TrialBackend;
  /** Default: the server's memory. */
  readonly queue?: QueueKind;
  readonly rollouts: number;
  readonly cancelled: number;
  readonly concurrency: number;
  readonly seed: number;
  /** Those to be met, one after the other and again; default: all, mixed. */
  readonly phases?: readonly AbortPhase[];
  /** How long the engine thinks about each call; default: as long as the default of `longestStayMs` needs. */
  readonly latencyMs?: number;
  /** Into a phase: shorter than the shortest agent. */
  readonly longestStayMs?: number;
  /** How long after a receipt things may still be there, for machines that are busy with other things; then it may also be incomplete. 0 = not at all. */
  readonly patienceMs: number;
  readonly onReceipt?: (report: AbortReport) => void;
}

export interface AbortReport {
  readonly id: string;
  readonly phase: AbortPhase;
  /** Stage that the receipt names. */
  readonly stage: string | null;
  /** As the controller sees it, over HTTP. */
  readonly ms: number;
  /** Processes, sandboxes and model calls of it a moment before: the look that must find none afterwards finds them then. */
  readonly before: number;
  readonly processesKilled: number;
  readonly modelCallsEnded: number;
  readonly problems: readonly string[];
}

export interface AbortedRolloutsReport {
  readonly aborts: readonly AbortReport[];
  readonly survivors: readonly Pick<ControllerResult, 'id' | 'status' | 'reward'>[];
  readonly problems: readonly string[];
}

interface Planned {
  readonly id: string;
  readonly marker: string;
  /** null = it is left alone. */
  readonly phase: AbortPhase | null;
}

const longestMs = 600_000;
const mixedPhases = abortPhases.map(
  (_, turn) => abortPhases[(turn * 5 + 2) % abortPhases.length] ?? 'before',
);
/** A workflow makes four calls, and an agent of ours some more with time between them. */
const usualLatencyMs: Record<TrialBackend, number> = { native: 700, harbor: 1_500 };

export async function abortRollouts(
  options: AbortedRolloutsOptions,
): Promise<AbortedRolloutsReport> {
  const root = await mkdtemp(path.join(os.tmpdir(), 'aborted-'));
  const stateDir = path.join(root, 'state');
  try {
    const bench = await AbortBench.open(root, { ...options, stateDir });
    const ended = await bench.run().finally(() => bench[Symbol.asyncDispose]());
    const left = await ownLeftovers(root, { stateDir, withinMs: 10_000 });
    return { ...ended, problems: [...ended.problems, ...left.map((what) => `left: ${what}`)] };
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

class AbortBench implements AsyncDisposable {
  readonly #options: AbortedRolloutsOptions & { readonly stateDir: string };
  readonly #root: string;
  readonly #random: () => number;
  readonly #stack = new AsyncDisposableStack();
  #url = '';
  #front: EngineFront | null = null;
  #controller: RolloutController | null = null;
  readonly #stages = new Map<string, RolloutDocument>();
  #isOver = false;

  private constructor(
    root: string,
    options: AbortedRolloutsOptions & { readonly stateDir: string },
  ) {
    this.#root = root;
    this.#options = options;
    this.#random = seededRandom(options.seed);
  }

  static async open(
    root: string,
    options: AbortedRolloutsOptions & { readonly stateDir: string },
  ): Promise<AbortBench> {
    const bench = new AbortBench(root, options);
    try {
      await bench.#start();
      return bench;
    } catch (error) {
      await bench[Symbol.asyncDispose]();
      throw error;
    }
  }

  async run(): Promise<AbortedRolloutsReport> {
    const plan = this.#plan();
    for (const rollout of plan) await this.#writeTask(rollout);
    const watching = this.#watch();
    const aborts: AbortReport[] = [];
    const survivors: ControllerResult[] = [];
    const problems: string[] = [];
    await Promise.all(
      plan.map(async (rollout) => {
        if (rollout.phase === null) {
          survivors.push(await this.#run(rollout));
          return;
        }
        const report = await this.#abort(rollout, rollout.phase);
        aborts.push(report);
        this.#options.onReceipt?.(report);
      }),
    );
    this.#isOver = true;
    await watching;
    for (const { id, phase } of plan) problems.push(...(await this.#judge(id, phase)));
    for (const { id, status, reward } of survivors)
      if (status !== 'success' || reward !== 1)
        problems.push(`${id} was left alone and ended as ${status}, reward ${String(reward)}`);
    problems.push(...aborts.flatMap((abort) => abort.problems));
    return { aborts, survivors, problems };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isOver = true;
    this.#stop.abort(new Error('over'));
    await this.#stack.disposeAsync();
  }

  async #start(): Promise<void> {
    const { backend, stateDir, concurrency, rollouts } = this.#options;
    const { latencyMs = usualLatencyMs[backend] } = this.#options;
    await mkdir(stateDir);
    const policy = path.join(repositoryDir, 'tests/support/policies/hostile-policy.ts');
    const engine = await startEngineProcess([
      ...['--policy', policy, '--latency', `constant:${latencyMs}`],
    ]);
    this.#stack.use(engine);
    this.#front = this.#stack.use(new EngineFront(engine.url));
    await this.#front.start();
    const config = path.join(this.#root, 'slipway.toml');
    await writeFile(
      config,
      backend === 'harbor'
        ? harborTable('Stubborn', path.join(this.#root, 'tasks'))
        : `[backend]\nkind = "native"\n[backend.native]\nenvironment = "local"\nagent_options = { record_terminal_session = false }\n`,
    );
    const service = await RolloutService.start({
      ...{ queue: this.#options.queue ?? 'memory', stateDir, maxConcurrent: concurrency },
      flags: ['--config', config, '--shutdown-drain-sec', '0'],
      frontFlags: ['--max-queue-depth', String(rollouts)],
    });
    this.#stack.use(service);
    this.#url = service.url;
    this.#controller = this.#stack.use(new RolloutController({ serverUrl: service.url }));
    await this.#controller.start();
  }

  /** Which are cancelled, and when. Those that are to be met in the queue are submitted last, as places are given in that order. */
  #plan(): readonly Planned[] {
    const { rollouts, cancelled, seed, phases = mixedPhases } = this.#options;
    const every = rollouts / cancelled;
    const plan = Array.from({ length: rollouts }, (_, index): Planned => {
      const turn = Math.floor(index / every);
      const isCancelled = Math.floor((index + 1) / every) > turn;
      const phase = isCancelled ? (phases[turn % phases.length] ?? null) : null;
      return {
        id: `rollout-${index}`,
        marker: `${process.pid % 10_000}${String(seed % 100).padStart(2, '0')}${String(index).padStart(3, '0')}`,
        phase,
      };
    });
    return [
      ...plan.filter(({ phase }) => phase !== 'queued'),
      ...plan.filter(({ phase }) => phase === 'queued'),
    ];
  }

  #run({ id }: Planned): Promise<ControllerResult> {
    const request = {
      rollout_id: id,
      initial_messages: [],
      chat_completions_url: this.#front!.apiBase(id),
      metadata: { harbor_task: path.join(this.#root, 'tasks', id) },
    };
    return this.#controller!.run(request, this.#stop.signal);
  }

  readonly #stop = new AbortController();

  async #abort(rollout: Planned, phase: AbortPhase): Promise<AbortReport> {
    const { id } = rollout;
    if (phase === 'before') {
      const { receipt, ms } = await this.#cancel(id);
      const problems = await this.#isRefused(rollout);
      return this.#report(rollout, { phase, receipt, ms, problems, before: 0 });
    }
    const run = this.#run(rollout).then(
      () => undefined,
      () => undefined,
    );
    void run;
    await this.#isIn(id, phase);
    const { longestStayMs = 3_000 } = this.#options;
    if (phase !== 'queued') await delay(this.#random() * longestStayMs);
    const before = await this.#present(rollout);
    const [first, second] = await Promise.all([
      this.#cancel(id),
      phase === 'twice' ? this.#cancel(id) : null,
    ]);
    const problems = await this.#left(rollout);
    const again = phase === 'twice' ? [second, await this.#cancel(id)] : [];
    for (const other of again)
      if (JSON.stringify(other?.receipt) !== JSON.stringify(first.receipt))
        problems.push(`${id}: a second cancellation got another receipt`);
    return this.#report(rollout, { phase, ...first, problems, before: before.length });
  }

  #report(
    { id }: Planned,
    got: {
      readonly phase: AbortPhase;
      readonly receipt: ReceiptDocument;
      readonly ms: number;
      readonly before: number;
      readonly problems: readonly string[];
    },
  ): AbortReport {
    const { phase, receipt, ms, before } = got;
    const problems = [...got.problems];
    const wanted =
      phase === 'before'
        ? 'not_found'
        : phase === 'queued'
          ? 'cancelled_queued'
          : 'cancelled_running';
    if (receipt.disposition !== wanted)
      problems.push(`${id} (${phase}): ${receipt.disposition}, stage ${receipt.stage ?? 'none'}`);
    if (!receipt.is_complete && this.#options.patienceMs === 0)
      problems.push(`${id} (${phase}): ${receipt.problem ?? 'incomplete'}`);
    return {
      ...{ id, phase, ms, before, problems, stage: receipt.stage },
      processesKilled: receipt.processes_killed,
      modelCallsEnded: receipt.model_calls_ended,
    };
  }

  async #cancel(id: string): Promise<{ readonly receipt: ReceiptDocument; readonly ms: number }> {
    const since = performance.now();
    const answer = await fetch(`${this.#url}/api/v1/rollouts/cancel`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ids: [id] }),
    });
    const ms = performance.now() - since;
    const { receipts } = (await answer.json()) as { readonly receipts: readonly ReceiptDocument[] };
    return { receipt: receipts[0]!, ms };
  }

  /** A rollout that was cancelled before it came is not taken. */
  async #isRefused(rollout: Planned): Promise<string[]> {
    try {
      const { status } = await this.#run(rollout);
      return status === 'cancelled' ? [] : [`${rollout.id} was cancelled before it came, and ran`];
    } catch {
      return [];
    }
  }

  async #left(rollout: Planned): Promise<string[]> {
    const until = performance.now() + this.#options.patienceMs;
    for (;;) {
      const present = await this.#present(rollout);
      if (present.length === 0 || performance.now() >= until) return present;
      await delay(100);
    }
  }

  /** What of a cancelled rollout is still there. */
  async #present({ id, marker }: Planned): Promise<string[]> {
    const processes = await hostProcessesWith(marker);
    const dir = path.join(this.#options.stateDir, 'sandboxes');
    const sandboxes = (await readdir(dir).catch(() => [])).filter((name) =>
      name.startsWith(`slipway-native-${id}-`),
    );
    const calls = this.#front!.open(id);
    return [
      ...processes.map((line) => `${id}: process ${line}`),
      ...sandboxes.map((name) => `${id}: sandbox ${name}`),
      ...(calls === 0 ? [] : [`${id}: ${calls} model calls`]),
    ];
  }

  /** Once everything is over: no callback, no call and no process after the cancellation. */
  async #judge(id: string, phase: AbortPhase | null): Promise<readonly string[]> {
    if (phase === null) return [];
    const problems: string[] = [];
    const callbacks = this.#controller!.received(id).length;
    // The agent of a verified rollout had its end, and its completion was told before the cancellation.
    if (callbacks > (phase === 'verifying' ? 1 : 0)) problems.push(`${id}: ${callbacks} callbacks`);
    const answer = await fetch(`${this.#url}/rollout/${id}/status`);
    const { status } = (await answer.json()) as { readonly status: string };
    if (status !== 'cancelled') problems.push(`${id} (${phase}) ended as ${status}`);
    return problems;
  }

  /** Resolves when the rollout is in the phase. */
  async #isIn(id: string, phase: AbortPhase): Promise<void> {
    const until = performance.now() + longestMs;
    for (;;) {
      const document = this.#stages.get(id);
      const hasAsked = this.#front!.firstAt(id) !== null;
      if (document !== undefined && isIn(document, phase, hasAsked)) return;
      if (performance.now() > until || this.#isOver)
        throw new Error(`${id} never came to ${phase}: ${JSON.stringify(document)}`);
      await delay(5);
    }
  }

  /** One look for all who wait. */
  async #watch(): Promise<void> {
    while (!this.#isOver) {
      const answer = await fetch(`${this.#url}/api/v1/rollouts?limit=500`).catch(() => null);
      const { rollouts } = ((await answer?.json()) ?? { rollouts: [] }) as {
        readonly rollouts: readonly RolloutDocument[];
      };
      for (const document of rollouts) this.#stages.set(document.id, document);
      await delay(25);
    }
  }

  async #writeTask({ id, marker, phase }: Planned): Promise<void> {
    const lingers = `(setsid sleep 6${marker} >/dev/null 2>&1 &)`;
    const restSec = phase === 'verifying' ? 30 : 0.5;
    await writeTrialTask(path.join(this.#root, 'tasks', id), {
      backend: this.#options.backend,
      instruction: `Stay, with the marker ${marker}.`,
      test: `trap "" TERM\n${lingers}\nsleep ${restSec}\necho 1 > /logs/verifier/reward.txt\n`,
    });
  }
}

/** `hasAsked`: its agent has called its model, and soon does what that says. */
function isIn(document: RolloutDocument, phase: AbortPhase, hasAsked: boolean): boolean {
  const { state, waiting_on: wait } = document;
  switch (phase) {
    case 'before':
      return true;
    case 'queued':
      return state === 'queued';
    case 'booting':
      return wait?.kind === 'sandbox-create';
    case 'running':
      return wait?.kind === 'agent' && hasAsked;
    case 'twice':
      return wait?.kind === 'agent';
    case 'verifying':
      return wait?.kind === 'verifier';
  }
}
