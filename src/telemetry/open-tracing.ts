/** The packages of OpenTelemetry are optional: they are loaded when spans are asked for, and what is missing is named. */
import { RolloutError } from '../core/errors.ts';
import type { Tracing } from './spans.ts';

export interface TracingOptions {
  /** `http://127.0.0.1:4318`: `/v1/traces` is appended where it is missing. */
  readonly otlpUrl: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  readonly instanceId: string | null;
  /** An export that takes longer, repetitions included, is given up. */
  readonly exportTimeoutMs: number;
}

const packages =
  '@opentelemetry/api @opentelemetry/sdk-trace @opentelemetry/exporter-trace-otlp-http @opentelemetry/resources';
/** Spans that wait for the exporter; beyond it they are dropped, and rollouts go on. */
const waitingSpans = 65_536;
const spansPerExport = 1_024;
const exportEveryMs = 1_000;

export async function openTracing(options: TracingOptions): Promise<Tracing> {
  const [api, sdk, { OTLPTraceExporter }, { resourceFromAttributes }] = await load();
  const { otlpUrl, headers, serviceName, instanceId, exportTimeoutMs } = options;
  const exporter = new OTLPTraceExporter({
    url: tracesUrl(otlpUrl),
    headers: { ...headers },
    timeoutMillis: exportTimeoutMs,
  });
  const provider = new sdk.TracerProvider({
    resource: resourceFromAttributes({
      'service.name': serviceName,
      ...(instanceId !== null && { 'service.instance.id': instanceId }),
    }),
    spanProcessors: [
      new sdk.BatchSpanProcessor({
        exporter,
        maxQueueSize: waitingSpans,
        maxExportBatchSize: spansPerExport,
        scheduledDelayMillis: exportEveryMs,
      }),
    ],
  });
  return {
    tracer: provider.getTracer('slipway'),
    errorStatus: api.SpanStatusCode.ERROR,
    within: (span) => api.trace.setSpan(api.ROOT_CONTEXT, span),
    close: () => provider.shutdown(),
  };
}

function tracesUrl(base: string): string {
  const trimmed = base.endsWith('/') ? base.slice(0, -1) : base;
  return trimmed.endsWith('/v1/traces') ? trimmed : `${trimmed}/v1/traces`;
}

async function load() {
  try {
    return await Promise.all([
      import('@opentelemetry/api'),
      import('@opentelemetry/sdk-trace'),
      import('@opentelemetry/exporter-trace-otlp-http'),
      import('@opentelemetry/resources'),
    ]);
  } catch (error) {
    throw new RolloutError('CONFIG_INVALID', 'spans need packages that are not installed', {
      phase: 'config',
      field: 'telemetry.otlp_url',
      remedy: `Run npm install ${packages}, or leave the setting out.`,
      cause: error,
    });
  }
}
