/** Metrics and spans of one server behind one observer. Nothing is global: two servers in one process do not see each other's numbers. */
import type { Clock } from '../core/clock.ts';
import type { Logger } from '../core/logger.ts';
import type {
  AdmissionFacts,
  CallbackNews,
  CallNews,
  CommitNews,
  RolloutNews,
  TelemetryObserver,
} from './facts.ts';

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
}

export class Telemetry implements TelemetryObserver, AsyncDisposable {
  /** Loads the optional packages when `otlpUrl` is set; CONFIG_INVALID says which is missing. */
  static open(options: TelemetryOptions): Promise<Telemetry> {
    throw new Error(`not yet: ${options.serviceName}`);
  }

  readonly contentType: string = '';

  /** What a scrape asks for the admission gauges; until then they are zero. */
  readAdmission(read: () => AdmissionFacts): void {
    void read;
  }

  /** The Prometheus page. */
  text(): Promise<string> {
    return Promise.resolve('');
  }

  rollout(rollout: { readonly id: string; readonly tenant: string }, news: RolloutNews): void {
    void rollout;
    void news;
  }

  callback(rolloutId: string, news: CallbackNews): void {
    void rolloutId;
    void news;
  }

  call(rolloutId: string, news: CallNews): void {
    void rolloutId;
    void news;
  }

  commit(news: CommitNews): void {
    void news;
  }

  /** Ends open spans and exports what is left, within the bound of `signal`. Idempotent. */
  close(signal: AbortSignal): Promise<void> {
    void signal;
    return Promise.resolve();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close(AbortSignal.timeout(5_000));
  }
}
