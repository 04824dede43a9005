/** Brings rollouts to a server: waits while it is full, and cancels. */
import { Agent, request, type Dispatcher } from 'undici';
import type { Clock } from '../core/clock.ts';
import { LinkedAbort } from '../core/linked-abort.ts';

export interface SubmitterOptions {
  readonly serverUrl: string | (() => string);
  readonly serverKey: string | null;
  readonly resubmits: boolean;
  readonly admissionTimeoutMs: number;
  readonly clock: Clock;
}

/** The server answered something that is neither acceptance nor "full". */
export class SubmissionRefused extends Error {
  override readonly name = 'SubmissionRefused';
  /** null = it was full for longer than the controller waits. */
  readonly status: number | null;

  constructor(message: string, status: number | null) {
    super(message);
    this.status = status;
  }
}

const answerMs = 60_000;
const cancelMs = 5_000;
const resubmitPauseMs = 100;

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly retryAfter: string | null;
}

export class RolloutSubmitter {
  readonly #options: SubmitterOptions;
  readonly #agent = new Agent({
    connections: null,
    pipelining: 1,
    allowH2: false,
    keepAliveMaxTimeout: 4_000,
  });

  constructor(options: SubmitterOptions) {
    this.#options = options;
  }

  /** Resolves with the number of submissions when one was accepted. */
  async submit(body: string, signal: AbortSignal): Promise<number> {
    const { clock, admissionTimeoutMs } = this.#options;
    const startMs = clock.monotonicMs();
    for (let attempts = 1; ; attempts += 1) {
      const answer = await this.#posted(body, signal);
      if (answer.status === 202) return attempts;
      if (answer.status !== 429)
        throw new SubmissionRefused(
          `POST /rollout answered ${answer.status}: ${answer.text.slice(0, 500)}`,
          answer.status,
        );
      const waitMs = retryAfterMs(answer.retryAfter);
      if (clock.monotonicMs() - startMs + waitMs > admissionTimeoutMs)
        throw new SubmissionRefused('the server was full for longer than allowed', null);
      await clock.sleep(waitMs, signal);
    }
  }

  async cancel(ids: readonly string[]): Promise<Readonly<Record<string, string>>> {
    using link = new LinkedAbort([], { ms: cancelMs, reason: () => new Error('no answer') });
    const answer = await this.#post('/rollout/cancel', JSON.stringify({ ids }), link.signal);
    const document = JSON.parse(answer.text) as { readonly dispositions?: Record<string, string> };
    return document.dispositions ?? {};
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  /** Without an answer it may have been taken: only the same bytes may be sent again. */
  async #posted(body: string, signal: AbortSignal): Promise<Answer> {
    for (;;) {
      try {
        using link = new LinkedAbort([signal], {
          ms: answerMs,
          reason: () => new Error('no answer'),
        });
        const answer = await this.#post('/rollout', body, link.signal);
        if (!this.#options.resubmits || answer.status !== 503) return answer;
      } catch (error) {
        if (signal.aborted || !this.#options.resubmits) throw error;
      }
      await this.#options.clock.sleep(resubmitPauseMs, signal);
    }
  }

  async #post(path: string, body: string, signal: AbortSignal): Promise<Answer> {
    const { serverUrl, serverKey } = this.#options;
    const base = (typeof serverUrl === 'string' ? serverUrl : serverUrl()).replace(/\/$/, '');
    const answer: Dispatcher.ResponseData = await request(`${base}${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(serverKey !== null && { authorization: `Bearer ${serverKey}` }),
      },
      body,
      signal,
      dispatcher: this.#agent,
    });
    const retryAfter = answer.headers['retry-after'];
    return {
      status: answer.statusCode,
      text: await answer.body.text(),
      retryAfter: typeof retryAfter === 'string' ? retryAfter : null,
    };
  }
}

/** As the reference controller reads it: seconds, 1 without a sensible number, between 0.05 and 60. */
function retryAfterMs(header: string | null): number {
  const seconds = header === null || header.trim() === '' ? NaN : Number(header);
  return 1_000 * (Number.isFinite(seconds) ? Math.min(Math.max(seconds, 0.05), 60) : 1);
}
