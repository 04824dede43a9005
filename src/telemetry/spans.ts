/**
 * One trace per rollout: a span for its whole life, and one below it per stage. The spans of a rollout that is settled are all ended; those of
 * rollouts that the server leaves behind are ended when it closes, with a word that says so.
 */
import type { Context, Span, SpanStatusCode, Tracer } from '@opentelemetry/api';
import type { Clock } from '../core/clock.ts';
import type { CallbackNews, CallNews, RolloutNews } from './facts.ts';

/** What the tracer's packages bring; they are optional, so nothing here imports their values. */
export interface Tracing {
  readonly tracer: Tracer;
  readonly errorStatus: SpanStatusCode;
  /** A context in which the span is the parent. */
  within(span: Span): Context;
  /** Exports what is left. */
  close(): Promise<void>;
}

const stageOf = {
  queued: 'queued',
  started: 'run',
  requeued: 'queued',
  completed: 'grade',
  ended: 'settle',
} as const;

interface Trace {
  readonly whole: Span;
  readonly below: Context;
  stage: Span;
  calls: number;
  failedCalls: number;
}

export class RolloutSpans {
  readonly #tracing: Tracing;
  readonly #clock: Clock;
  readonly #traces = new Map<string, Trace>();

  constructor(tracing: Tracing, clock: Clock) {
    this.#tracing = tracing;
    this.#clock = clock;
  }

  get open(): number {
    return this.#traces.size;
  }

  rollout(
    { id, tenant }: { readonly id: string; readonly tenant: string },
    news: RolloutNews,
  ): void {
    const at = this.#clock.now();
    const trace = this.#traces.get(id);
    if (news.type === 'settled') {
      if (trace === undefined) return;
      this.#traces.delete(id);
      this.#end(trace, at);
      return;
    }
    const name = stageOf[news.type];
    if (trace === undefined) {
      const attributes = { 'slipway.rollout_id': id, 'slipway.tenant': tenant };
      const whole = this.#tracing.tracer.startSpan('rollout', { startTime: at, attributes });
      const below = this.#tracing.within(whole);
      const stage = this.#tracing.tracer.startSpan(name, { startTime: at }, below);
      this.#traces.set(id, { whole, below, stage, calls: 0, failedCalls: 0 });
    } else {
      trace.stage.end(at);
      trace.stage = this.#tracing.tracer.startSpan(name, { startTime: at }, trace.below);
    }
    if (news.type === 'ended') this.#note(id, news);
  }

  callback(rolloutId: string, { channel, result, attempts }: CallbackNews): void {
    const attributes = { channel, result, attempts };
    this.#traces.get(rolloutId)?.whole.addEvent('callback', attributes, this.#clock.now());
  }

  call(rolloutId: string, { status }: CallNews): void {
    const trace = this.#traces.get(rolloutId);
    if (trace === undefined) return;
    trace.calls += 1;
    if (status === null || status >= 400) trace.failedCalls += 1;
  }

  async close(): Promise<void> {
    const at = this.#clock.now();
    for (const trace of this.#traces.values()) {
      trace.whole.addEvent('the server ended first', at);
      this.#end(trace, at);
    }
    this.#traces.clear();
    await this.#tracing.close();
  }

  #note(id: string, { outcome }: Extract<RolloutNews, { type: 'ended' }>): void {
    const whole = this.#traces.get(id)?.whole;
    whole?.setAttributes({
      'slipway.state': outcome.status,
      'slipway.stage': outcome.stage,
      'slipway.trainable': outcome.trainable,
      ...(outcome.cause !== null && { 'slipway.cause': outcome.cause }),
      ...(outcome.reward !== null && { 'slipway.reward': outcome.reward }),
    });
    // Messages of failures may hold what an agent wrote: the code says enough.
    if (outcome.status === 'failure')
      whole?.setStatus({ code: this.#tracing.errorStatus, message: outcome.cause ?? 'failure' });
  }

  #end({ whole, stage, calls, failedCalls }: Trace, at: Date): void {
    stage.end(at);
    whole.setAttributes({
      'slipway.model_calls': calls,
      'slipway.model_calls_failed': failedCalls,
    });
    whole.end(at);
  }
}
