/**
 * The numbers of one server, in a registry of its own. Every series exists from the start and none is added later: how many there are depends on the
 * configuration (tenants) alone, never on what happened.
 */
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { errorRegistry } from '../core/error-registry.ts';
import type { RolloutOutcome } from '../wire/rollout/rollout-outcome.ts';
import type { AdmissionFacts, CallbackNews, CallNews, CommitNews, GatewayFacts } from './facts.ts';
import { addGatewayMetrics } from './gateway-metrics.ts';
import { addProcessMetrics } from './process-metrics.ts';

export const stages = ['queued', 'running', 'grading', 'settling', 'whole'] as const;
export type StageName = (typeof stages)[number];

/** From a null backend's millisecond to an agent's day. */
const stageBuckets = [
  0.005, 0.025, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 1_800, 3_600, 7_200, 14_400, 43_200, 86_400,
];
const callBuckets = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1_800];
const commitBuckets = [0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5];
const groupBuckets = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024];

const states = ['success', 'failure', 'cancelled'] as const;
const causes = Object.keys(errorRegistry);
const callStatuses = ['2xx', '3xx', '4xx', '5xx', 'none'] as const;
const channels = ['completion', 'grader'] as const;
const results = ['delivered', 'dead', 'withdrawn'] as const;
const none = 'none';
const other = 'other';

export class Metrics implements AsyncDisposable {
  readonly registry = new Registry();
  readonly #tenants: ReadonlySet<string>;
  readonly #accepted = this.#counter('rollouts_accepted_total', 'Rollouts that were taken in.');
  readonly #requeued = this.#counter('rollout_requeues_total', 'Rollouts given back unbegun.');
  readonly #ended = this.#counter('rollouts_ended_total', 'Rollouts by how they ended.', [
    'state',
    'cause',
  ]);
  readonly #tenantEnded = this.#counter('tenant_rollouts_ended_total', 'The same by tenant.', [
    'tenant',
    'state',
  ]);
  readonly #stage = this.#histogram(
    { name: 'rollout_stage_seconds', help: 'Time in a stage of the life.', labels: ['stage'] },
    stageBuckets,
  );
  readonly #callbacks = this.#counter('callbacks_total', 'Callbacks by how their delivery ended.', [
    'channel',
    'result',
  ]);
  readonly #attempts = this.#counter('callback_attempts_total', 'Attempts of those.', ['channel']);
  readonly #calls = this.#counter('gateway_calls_total', 'Model calls by class of their status.', [
    'status',
  ]);
  readonly #callBytes = this.#counter('gateway_answer_bytes_total', 'Bytes of their answers.');
  readonly #firstByte = this.#histogram(
    { name: 'gateway_first_byte_seconds', help: 'From a call to the first byte of its answer.' },
    callBuckets,
  );
  readonly #call = this.#histogram(
    { name: 'gateway_call_seconds', help: 'Model calls as a whole.' },
    callBuckets,
  );
  readonly #commit = this.#histogram(
    { name: 'store_commit_seconds', help: 'Transactions of the store, synced to disk.' },
    commitBuckets,
  );
  readonly #group = this.#histogram(
    { name: 'store_commit_writes', help: 'Writes that shared one transaction.' },
    groupBuckets,
  );
  readonly #endProcess: () => void;
  #readAdmission: (() => AdmissionFacts) | null = null;
  #readGateway: () => readonly GatewayFacts[] = () => [];

  constructor(tenants: readonly string[]) {
    this.#tenants = new Set([...tenants, other]);
    for (const state of states) {
      for (const cause of state === 'failure' ? [...causes, none] : [none])
        this.#ended.inc({ state, cause }, 0);
      for (const tenant of this.#tenants) this.#tenantEnded.inc({ tenant, state }, 0);
    }
    for (const channel of channels) {
      this.#attempts.inc({ channel }, 0);
      for (const result of results) this.#callbacks.inc({ channel, result }, 0);
    }
    for (const status of callStatuses) this.#calls.inc({ status }, 0);
    for (const stage of stages) this.#stage.zero({ stage });
    this.#addAdmissionGauges();
    addGatewayMetrics(this.registry, () => this.#readGateway());
    this.#endProcess = addProcessMetrics(this.registry);
  }

  readAdmission(read: () => AdmissionFacts): void {
    this.#readAdmission = read;
  }

  readGateway(read: () => readonly GatewayFacts[]): void {
    this.#readGateway = read;
  }

  accepted(): void {
    this.#accepted.inc();
  }

  requeued(): void {
    this.#requeued.inc();
  }

  ended(tenant: string, { status, cause }: RolloutOutcome): void {
    const named = status === 'failure' && cause !== null ? cause : none;
    this.#ended.inc({ state: status, cause: named });
    this.#tenantEnded.inc({ tenant: this.#tenantLabel(tenant), state: status });
  }

  stage(stage: StageName, durationMs: number): void {
    this.#stage.observe({ stage }, durationMs / 1_000);
  }

  callback({ channel, result, attempts }: CallbackNews): void {
    this.#callbacks.inc({ channel, result });
    this.#attempts.inc({ channel }, attempts);
  }

  call({ status, firstByteMs, durationMs, answerBytes }: CallNews): void {
    this.#calls.inc({ status: status === null ? none : `${Math.trunc(status / 100)}xx` });
    this.#callBytes.inc(answerBytes);
    if (firstByteMs !== null) this.#firstByte.observe(firstByteMs / 1_000);
    this.#call.observe(durationMs / 1_000);
  }

  commit({ durationMs, writes }: CommitNews): void {
    this.#commit.observe(durationMs / 1_000);
    this.#group.observe(writes);
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.#endProcess();
    this.registry.clear();
    return Promise.resolve();
  }

  #tenantLabel(tenant: string): string {
    return this.#tenants.has(tenant) ? tenant : other;
  }

  #addAdmissionGauges(): void {
    const rows: readonly (readonly [string, string, (facts: AdmissionFacts) => number])[] = [
      ['max_concurrent', 'Rollouts that may run at once.', (f) => f.capacity.max_concurrent],
      ['max_queue_depth', 'Rollouts that may wait.', (f) => f.capacity.max_queue_depth],
      ['in_flight', 'Reservations held.', (f) => f.capacity.in_flight],
      ['available', 'Reservations left.', (f) => f.capacity.available],
      ['accepting', '1 = new rollouts are taken in.', (f) => Number(f.capacity.accepting)],
      ['running_cap', 'Rollouts that may run now.', (f) => f.runningCap],
      ['running', 'Rollouts that run.', (f) => f.running],
      ['queued', 'Rollouts that wait.', (f) => f.queued],
      ['delivering', 'Ended, callbacks or archive under way.', (f) => f.delivering],
      ['paused', '1 = paused after failures.', (f) => Number(f.paused !== null)],
    ];
    for (const [name, help, value] of rows)
      this.#gauge(`admission_${name}`, help, [], (gauge) => {
        const facts = this.#readAdmission?.();
        gauge.set(facts === undefined ? 0 : value(facts));
      });
    const perTenant = (state: 'running' | 'queued') => (gauge: Gauge) => {
      const facts = this.#readAdmission?.().tenants ?? [];
      const sums = new Map([...this.#tenants].map((tenant) => [tenant, 0]));
      for (const tenant of facts) {
        const label = this.#tenantLabel(tenant.name);
        sums.set(label, (sums.get(label) ?? 0) + tenant[state]);
      }
      for (const [tenant, sum] of sums) gauge.set({ tenant }, sum);
    };
    this.#gauge('tenant_running', 'Rollouts that run.', ['tenant'], perTenant('running'));
    this.#gauge('tenant_queued', 'Rollouts that wait.', ['tenant'], perTenant('queued'));
  }

  #counter(name: string, help: string, labelNames: readonly string[] = []): Counter {
    const registers = [this.registry];
    return new Counter({ name: `slipway_${name}`, help, labelNames: [...labelNames], registers });
  }

  #gauge(
    name: string,
    help: string,
    labelNames: readonly string[],
    read: (gauge: Gauge) => void,
  ): void {
    const gauge: Gauge = new Gauge({
      ...{ name: `slipway_${name}`, help, labelNames: [...labelNames] },
      registers: [this.registry],
      collect: () => read(gauge),
    });
  }

  #histogram(
    what: { readonly name: string; readonly help: string; readonly labels?: readonly string[] },
    buckets: number[],
  ): Histogram {
    return new Histogram({
      ...{ name: `slipway_${what.name}`, help: what.help, labelNames: [...(what.labels ?? [])] },
      ...{ buckets, registers: [this.registry] },
    });
  }
}
