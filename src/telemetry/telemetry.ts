/** Metrics, spans and lines of the log of one server behind one observer. Nothing is global: two servers in one process do not see each other's numbers. */
import type { Clock } from '../core/clock.ts';
import { messageOf } from '../core/errors.ts';
import type { Logger } from '../core/logger.ts';
import type {
  AdmissionFacts,
  CallbackNews,
  CallNews,
  CommitNews,
  GatewayFacts,
  RolloutNews,
  TelemetryObserver,
} from './facts.ts';
import { Metrics } from './metrics.ts';
import { openTracing } from './open-tracing.ts';
import { RolloutLines } from './rollout-lines.ts';
import { RolloutTimes } from './rollout-times.ts';
import { RolloutSpans } from './spans.ts';

export interface TelemetryOptions {
  readonly clock: Clock;
  readonly logger: Logger;
  /** Configured tenants, `default` included: the only values of a tenant label. Others count as `other`. */
  readonly tenants: readonly string[];
  /** Base address of an OTLP/HTTP receiver (`http://127.0.0.1:4318`); null = no spans. */
  readonly otlpUrl: string | null;
  /** Headers of the exporter, keys included; never logged. */
  readonly otlpHeaders: Readonly<Record<string, string>>;
  readonly serviceName: string;
  readonly instanceId: string | null;
  /** Default 5,000. */
  readonly exportTimeoutMs?: number;
}

export class Telemetry implements TelemetryObserver, AsyncDisposable {
  /** Loads the optional packages when `otlpUrl` is set; CONFIG_INVALID says which are missing. */
  static async open(options: TelemetryOptions): Promise<Telemetry> {
    const { otlpUrl, otlpHeaders, serviceName, instanceId, clock } = options;
    if (otlpUrl === null) return new Telemetry(options, null);
    const tracing = await openTracing({
      ...{ otlpUrl, headers: otlpHeaders, serviceName, instanceId },
      exportTimeoutMs: options.exportTimeoutMs ?? 5_000,
    });
    return new Telemetry(options, new RolloutSpans(tracing, clock));
  }

  readonly #logger: Logger;
  readonly #metrics: Metrics;
  readonly #times: RolloutTimes;
  readonly #lines: RolloutLines;
  readonly #spans: RolloutSpans | null;
  #closing: Promise<void> | null = null;
  #hasFailed = false;

  private constructor({ clock, logger, tenants }: TelemetryOptions, spans: RolloutSpans | null) {
    this.#logger = logger;
    this.#spans = spans;
    this.#metrics = new Metrics(tenants);
    this.#lines = new RolloutLines(logger);
    this.#times = new RolloutTimes(clock, (stage, ms) => this.#metrics.stage(stage, ms));
  }

  get contentType(): string {
    return this.#metrics.registry.contentType;
  }

  /** What a scrape asks for the admission gauges; until then they are zero. */
  readAdmission(read: () => AdmissionFacts): void {
    this.#metrics.readAdmission(read);
  }

  /** The same of the gateway; the processes that it names are always the same ones. */
  readGateway(read: () => readonly GatewayFacts[]): void {
    this.#metrics.readGateway(read);
  }

  /** The Prometheus page. */
  async text(): Promise<string> {
    return await this.#metrics.registry.metrics();
  }

  rollout(rollout: { readonly id: string; readonly tenant: string }, news: RolloutNews): void {
    this.#safely(() => {
      if (news.type === 'queued') this.#metrics.accepted();
      if (news.type === 'requeued') this.#metrics.requeued();
      if (news.type === 'ended') this.#metrics.ended(rollout.tenant, news.outcome);
      this.#times.note(rollout.id, news.type);
      this.#lines.rollout(rollout, news);
      this.#spans?.rollout(rollout, news);
    });
  }

  callback(rolloutId: string, news: CallbackNews): void {
    this.#safely(() => {
      this.#metrics.callback(news);
      this.#lines.callback(rolloutId, news);
      this.#spans?.callback(rolloutId, news);
    });
  }

  call(rolloutId: string, news: CallNews): void {
    this.#safely(() => {
      this.#metrics.call(news);
      this.#spans?.call(rolloutId, news);
    });
  }

  commit(news: CommitNews): void {
    this.#safely(() => this.#metrics.commit(news));
  }

  /** Ends open spans and exports what is left, within the bound of `signal`. Idempotent. */
  close(signal: AbortSignal): Promise<void> {
    return (this.#closing ??= this.#close(signal));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close(AbortSignal.timeout(5_000));
  }

  async #close(signal: AbortSignal): Promise<void> {
    const spans = this.#spans?.close().catch((error: unknown) => {
      this.#logger.log('warn', 'spans were not exported', { error: messageOf(error) });
    });
    if (spans !== undefined) await Promise.race([spans, fired(signal)]);
    await this.#metrics[Symbol.asyncDispose]();
  }

  /** A defect here is told once and costs numbers, never a rollout. */
  #safely(work: () => void): void {
    try {
      work();
    } catch (error) {
      if (this.#hasFailed) return;
      this.#hasFailed = true;
      this.#logger.log('error', 'telemetry failed', { error: messageOf(error) });
    }
  }
}

async function fired(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) =>
    signal.addEventListener('abort', () => resolve(), { once: true }),
  );
}
