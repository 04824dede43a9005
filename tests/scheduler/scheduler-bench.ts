/** A scheduler on the real memory store, with parts around it that a test moves by hand. */
import type {
  AbortReceipt,
  ArchivedFiles,
  Execution,
  ExecutionBackend,
  ExecutionHooks,
  ExecutionRequest,
  ExecutionResult,
} from '../../src/backends/execution-backend.ts';
import type { ArchivedRollout, RolloutArchive } from '../../src/archive/rollout-archive.ts';
import type { CallbackDelivery, DeliveryEnd } from '../../src/callbacks/callback-delivery.ts';
import { canonicalJson } from '../../src/core/canonical-json.ts';
import type { ErrorCode } from '../../src/core/errors.ts';
import { never } from '../../src/core/linked-abort.ts';
import type { Logger } from '../../src/core/logger.ts';
import type { GatewayControl, RouteRequest } from '../../src/gateway/gateway-control.ts';
import type { SampleMaker } from '../../src/gateway/samples/sample-maker.ts';
import type { RouteActivity } from '../../src/wire/rollout/route-activity.ts';
import { RolloutScheduler } from '../../src/scheduler/rollout-scheduler.ts';
import type { SubmitAnswer } from '../../src/scheduler/rollout-service.ts';
import type {
  RolloutNews,
  SchedulerOptions,
  SchedulerParts,
} from '../../src/scheduler/scheduler-parts.ts';
import { MemoryRolloutStore } from '../../src/store/memory/memory-rollout-store.ts';
import type { Delivery, RolloutStore } from '../../src/store/rollout-store.ts';
import { rolloutRequestSchema } from '../../src/wire/rollout/rollout-request.ts';
import { ManualClock } from '../fakes/manual-clock.ts';
import { until } from '../support/until.ts';

export const operator = { tenant: null };

/** One execution that waits for the test. */
export class HandExecution implements Execution {
  readonly #result = Promise.withResolvers<ExecutionResult>();
  readonly request: ExecutionRequest;
  readonly hooks: ExecutionHooks;
  readonly aborts: Error[] = [];
  isReleased = false;
  /** What it was released with. */
  archived: ArchivedFiles | null = null;
  /** What an abort waits for. */
  abortGate: Promise<unknown> = Promise.resolve();

  constructor(request: ExecutionRequest, hooks: ExecutionHooks) {
    this.request = request;
    this.hooks = hooks;
    this.#result.promise.catch(() => undefined);
  }

  get result(): Promise<ExecutionResult> {
    return this.#result.promise;
  }

  succeed(reward: number | null = 1): void {
    this.#result.resolve(success(reward));
  }

  end(result: ExecutionResult): void {
    this.#result.resolve(result);
  }

  fail(cause: ErrorCode): void {
    this.#result.resolve(failure(cause));
  }

  break(error: unknown): void {
    this.#result.reject(error);
  }

  release(archived?: ArchivedFiles): Promise<void> {
    this.isReleased = true;
    this.archived = archived ?? null;
    return Promise.resolve();
  }

  async abort(reason: Error): Promise<AbortReceipt> {
    this.aborts.push(reason);
    await this.abortGate;
    this.#result.reject(reason);
    return {
      ...{ stage: 'agent', processesKilled: 3, confirmedGone: ['processes'] },
      ...{ isComplete: true, problem: null },
    };
  }
}

export function success(reward: number | null): ExecutionResult {
  return {
    ...{ status: 'success', errMessage: null, errCategory: null, trajectory: null, files: [] },
    sample: {
      ...{ messages: [{ role: 'assistant', content: 'done' }], trajectoryMessages: null },
      ...{ label: null, reward, isRemoved: false, metrics: {}, extraFields: {} },
    },
    outcome: { stage: 'done', cause: null, trainable: true, retryable: false, verdict: null },
    diagnostics: { phase: 'done' },
  };
}

export function failure(cause: ErrorCode): ExecutionResult {
  return {
    ...{ status: 'failure', sample: null, errMessage: `because of ${cause}` },
    ...{ errCategory: 'agent_error', trajectory: null, files: [] },
    outcome: { stage: 'agent', cause, trainable: false, retryable: true, verdict: null },
    diagnostics: { phase: 'agent' },
  };
}

export class HandBackend implements ExecutionBackend {
  readonly kind = 'hand';
  capturesFinalResult = false;
  readonly executions = new Map<string, HandExecution>();
  /** Called for every execution. */
  onExecute: (execution: HandExecution) => void = () => undefined;

  health(): Readonly<Record<string, unknown>> {
    return { status: 'ok', backend: 'hand' };
  }

  start(): Promise<void> {
    return Promise.resolve();
  }

  execute(request: ExecutionRequest, hooks: ExecutionHooks): Execution {
    const execution = new HandExecution(request, hooks);
    this.executions.set(request.id, execution);
    this.onExecute(execution);
    return execution;
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

class HandGateway implements GatewayControl {
  readonly routes = new Map<string, RouteRequest>();
  readonly calls: string[] = [];

  register(
    route: Parameters<GatewayControl['register']>[0],
  ): ReturnType<GatewayControl['register']> {
    this.routes.set(route.rolloutId, route);
    this.calls.push(`register ${route.rolloutId}`);
    return Promise.resolve({ baseUrl: 'http://gateway/v1', apiKey: `route-${route.rolloutId}` });
  }

  revoke(rolloutId: string): Promise<void> {
    if (this.routes.delete(rolloutId)) this.calls.push(`revoke ${rolloutId}`);
    return Promise.resolve();
  }

  abort(rolloutId: string): Promise<{ callsEnded: number }> {
    this.calls.push(`abort ${rolloutId}`);
    return Promise.resolve({ callsEnded: this.routes.delete(rolloutId) ? 2 : 0 });
  }

  /** Files of captured calls by rollout, until they are forgotten. */
  readonly files = new Map<string, string>();

  captured(rolloutId: string): Promise<string | null> {
    return Promise.resolve(this.files.get(rolloutId) ?? null);
  }

  forget(rolloutId: string): Promise<void> {
    if (this.files.delete(rolloutId)) this.calls.push(`forget ${rolloutId}`);
    return Promise.resolve();
  }

  left(): Promise<readonly string[]> {
    return Promise.resolve([...this.files.keys()]);
  }

  /** The budget that every rollout has run into. */
  spent: RouteActivity['spent'] = null;

  /** What is captured of every rollout. */
  capture: RouteActivity['capture'] = null;

  activity(rolloutId: string): Promise<RouteActivity | null> {
    const { spent, capture } = this;
    if (!this.routes.has(rolloutId) || (spent ?? capture) === null) return Promise.resolve(null);
    return Promise.resolve({
      ...{ callsRunning: 0, callsDone: 0, waiting: null, lastCallEndedAt: null },
      ...{ refusal: null, spent, capture },
    });
  }
}

/** Takes what it is given; delivers at once, or when the test says so. */
export class HandCallbacks implements CallbackDelivery {
  readonly store: RolloutStore;
  readonly enqueued: Delivery[] = [];
  isHeld = false;
  readonly #settled = new Map<string, PromiseWithResolvers<undefined>>();
  readonly #listeners = new Set<(end: DeliveryEnd) => void>();

  constructor(store: RolloutStore) {
    this.store = store;
  }

  bodies(
    id: string,
  ): readonly { readonly channel: string; readonly body: Record<string, unknown> }[] {
    return this.enqueued
      .filter(({ rolloutId }) => rolloutId === id)
      .map(({ channel, body }) => ({ channel, body: JSON.parse(body) as Record<string, unknown> }));
  }

  enqueue(deliveries: readonly Delivery[]): void {
    this.enqueued.push(...deliveries);
    if (!this.isHeld) for (const delivery of deliveries) void this.#deliver(delivery);
  }

  release(id: string): void {
    this.#settled.get(id)?.resolve(undefined);
  }

  async settled(rolloutId: string): Promise<void> {
    if (!this.isHeld) return;
    const waiting = this.#settled.get(rolloutId) ?? Promise.withResolvers<undefined>();
    this.#settled.set(rolloutId, waiting);
    await waiting.promise;
  }

  withdraw(): Promise<void> {
    return Promise.resolve();
  }

  activity(): null {
    return null;
  }

  onEnd(listener: (end: DeliveryEnd) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #deliver(delivery: Delivery): Promise<void> {
    await this.store.delivered(delivery.key, { attempts: 1, controllerReport: null });
    for (const listener of this.#listeners) listener({ delivery, result: 'delivered' });
  }
}

class HandArchive implements RolloutArchive {
  readonly saved: ArchivedRollout[] = [];
  /** Names that it cannot keep. */
  readonly unkept: { readonly name: string; readonly problem: string }[] = [];
  /** Whose end an earlier life has archived. */
  readonly endsOf = new Set<string>();
  onSave: (rollout: ArchivedRollout) => void = () => undefined;

  save(rollout: ArchivedRollout): ReturnType<RolloutArchive['save']> {
    this.saved.push(rollout);
    this.onSave(rollout);
    return Promise.resolve(this.unkept);
  }

  list(): Promise<[]> {
    return Promise.resolve([]);
  }

  locate(): Promise<null> {
    return Promise.resolve(null);
  }

  document(rolloutId: string): Promise<unknown> {
    return Promise.resolve(this.endsOf.has(rolloutId) ? {} : null);
  }

  remove(): Promise<void> {
    return Promise.resolve();
  }

  trim(): Promise<[]> {
    return Promise.resolve([]);
  }
}

export interface BenchOptions {
  readonly maxConcurrent?: number;
  readonly maxQueueDepth?: number | null;
  readonly queueTimeoutMs?: number;
  readonly cancelMs?: number;
  readonly tenants?: SchedulerOptions['tenants'];
  readonly pause?: SchedulerOptions['pause'];
  readonly store?: RolloutStore;
  readonly engineLoad?: SchedulerParts['engineLoad'];
  readonly clock?: ManualClock;
  readonly sampleMaker?: SampleMaker;
  readonly hosts?: NonNullable<SchedulerParts['hosts']>;
}

export class SchedulerBench {
  readonly clock: ManualClock;
  readonly store: RolloutStore;
  readonly backend = new HandBackend();
  readonly gateway = new HandGateway();
  readonly archive = new HandArchive();
  readonly callbacks: HandCallbacks;
  readonly news: string[] = [];
  readonly logged: string[] = [];
  readonly scheduler: RolloutScheduler;

  constructor(options: BenchOptions = {}) {
    this.clock = options.clock ?? new ManualClock();
    this.store = options.store ?? new MemoryRolloutStore(() => this.clock.now());
    this.callbacks = new HandCallbacks(this.store);
    const logger: Logger = {
      log: (level, message, fields) =>
        this.logged.push(`${level}: ${message} ${JSON.stringify(fields)}`),
    };
    this.scheduler = new RolloutScheduler(
      {
        limits: {
          maxConcurrent: options.maxConcurrent ?? 2,
          maxQueueDepth: options.maxQueueDepth === undefined ? 4 : options.maxQueueDepth,
          queueTimeoutMs: options.queueTimeoutMs ?? 3_600_000,
          cancelMs: options.cancelMs ?? 1_900,
        },
        tenants: options.tenants ?? [],
        pause: options.pause ?? { afterFailures: 0, retryMs: 30_000 },
        kv: { high: 0.9, low: 0.8, pollMs: 500 },
        retention: { maxAgeMs: 1e9, maxEnded: 1e6, archiveBytes: 1e9, everyMs: 1e9 },
        version: '1.2.3',
      },
      {
        ...{ store: this.store, backend: this.backend, gateway: this.gateway },
        ...{ callbacks: this.callbacks, archive: this.archive, clock: this.clock, logger },
        observers: [
          { rollout: ({ id }, news) => this.news.push(`${id} ${textOf(news)}`) },
          {
            rollout: () => {
              throw new Error('an observer that is broken');
            },
          },
        ],
        engineLoad: options.engineLoad ?? null,
        ...(options.sampleMaker !== undefined && { sampleMaker: options.sampleMaker }),
        ...(options.hosts !== undefined && { hosts: options.hosts }),
      },
    );
  }

  static async started(options: BenchOptions = {}): Promise<SchedulerBench> {
    const bench = new SchedulerBench(options);
    await bench.scheduler.start();
    return bench;
  }

  async submit(
    id: string | null,
    more: Readonly<Record<string, unknown>> = {},
    tenant: string | null = null,
  ): Promise<SubmitAnswer> {
    const body = {
      initial_messages: [{ role: 'user', content: 'work' }],
      chat_completions_url: 'http://controller/chat',
      completion_callback_url: 'http://controller/completion',
      grader_callback_url: 'http://controller/grader',
      controller_api_key: 'controller-key',
      ...(id !== null && { rollout_id: id }),
      ...more,
    };
    return await this.scheduler.submit({
      request: rolloutRequestSchema.parse(body),
      canonicalBody: canonicalJson(body),
      caller: { tenant },
    });
  }

  /** The execution of a rollout that runs, or soon will. */
  async execution(id: string): Promise<HandExecution> {
    await until(`${id} runs`, () => this.backend.executions.has(id));
    return this.backend.executions.get(id)!;
  }

  async state(id: string): Promise<string> {
    return (await this.store.rollout(id))?.state ?? 'unknown';
  }

  async reaches(id: string, state: string): Promise<void> {
    await until(`${id} is ${state}`, async () => (await this.state(id)) === state);
  }

  /** Nothing holds a reservation any more. */
  async empty(): Promise<void> {
    await until('nothing is in flight', () => this.scheduler.admission().capacity.in_flight === 0);
  }

  async events(): Promise<readonly string[]> {
    const { events } = await this.store.events({ after: 0, limit: 1000 });
    return events.map(({ rolloutId, type }) => `${rolloutId} ${type}`);
  }

  async stop(options: Partial<Parameters<RolloutScheduler['stop']>[0]> = {}): Promise<void> {
    await this.scheduler.stop({
      drainMs: 0,
      abortMs: 60_000,
      hurry: never,
      force: never,
      ...options,
    });
  }
}

/** A signal that has fired. */
export function fired(): AbortSignal {
  const controller = new AbortController();
  controller.abort(new Error('at once'));
  return controller.signal;
}

function textOf(news: RolloutNews): string {
  return news.type === 'ended' ? `ended ${news.outcome.status}` : news.type;
}
