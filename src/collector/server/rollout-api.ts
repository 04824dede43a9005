/** What a collector asks of a rollout server beside submitting: how a rollout ended, its samples, and that rollouts end. */
import { z } from 'zod';
import type { Clock } from '../../core/clock.ts';
import { messageOf, RolloutError } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { receiptsDocument, type ReceiptDocument } from '../../wire/api/receipt.ts';
import { rolloutDetailDocument, type RolloutDetailDocument } from '../../wire/api/rollout.ts';

export interface RolloutApiOptions {
  /** Of the control listener; a key may be part of it. */
  readonly serverUrl: string;
  readonly serverKey: string | null;
  readonly fetch: typeof fetch;
  readonly clock: Clock;
}

const answerMs = 30_000;
const attempts = 3;
const pauseMs = 200;
const longestPauseMs = 2_000;

/** How long a server that does not answer is asked again; absent = a few times within a second. */
interface Patience {
  readonly patienceMs?: number;
}

/** An answer that another try changes nothing about. */
class FinalAnswer extends Error {}

export class RolloutApi {
  readonly #options: RolloutApiOptions;

  constructor(options: RolloutApiOptions) {
    this.#options = options;
  }

  /** null = the server knows no such rollout. */
  async inspect(
    id: string,
    signal: AbortSignal,
    patience: Patience = {},
  ): Promise<RolloutDetailDocument | null> {
    const path = `/rollouts/${encodeURIComponent(id)}`;
    const text = await this.#asked('GET', path, { signal, ...patience });
    return text === null ? null : read(rolloutDetailDocument, text);
  }

  /** The lines as they are kept; null = there are none. */
  async samples(id: string, signal: AbortSignal, patience: Patience = {}): Promise<string | null> {
    const path = `/rollouts/${encodeURIComponent(id)}/samples`;
    return await this.#asked('GET', path, { signal, ...patience });
  }

  async cancel(ids: readonly string[], signal: AbortSignal): Promise<readonly ReceiptDocument[]> {
    const body = JSON.stringify({ ids });
    const text = await this.#asked('POST', '/rollouts/cancel', { signal, body });
    return text === null ? [] : read(receiptsDocument, text).receipts;
  }

  /** A server that restarts is asked again. SERVER_UNREACHABLE when it does not answer. */
  async #asked(
    method: 'GET' | 'POST',
    path: string,
    {
      signal,
      body,
      patienceMs = 0,
    }: Patience & { readonly signal: AbortSignal; readonly body?: string },
  ): Promise<string | null> {
    const { clock } = this.#options;
    const untilMs = clock.monotonicMs() + patienceMs;
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#ask(method, path, { signal, ...(body !== undefined && { body }) });
      } catch (error) {
        signal.throwIfAborted();
        const isOver = attempt >= attempts && clock.monotonicMs() >= untilMs;
        if (isOver || error instanceof FinalAnswer) throw unreachable(error);
        await clock.sleep(Math.min(longestPauseMs, pauseMs * attempt), signal);
      }
    }
  }

  async #ask(
    method: 'GET' | 'POST',
    path: string,
    { signal, body }: { readonly signal: AbortSignal; readonly body?: string },
  ): Promise<string | null> {
    const { serverUrl, serverKey } = this.#options;
    using link = new LinkedAbort([signal], {
      ms: answerMs,
      reason: () => new Error(`no answer within ${answerMs / 1_000} s`),
    });
    const answer = await this.#options.fetch(`${serverUrl.replace(/\/+$/, '')}/api/v1${path}`, {
      method,
      signal: link.signal,
      headers: {
        ...(serverKey !== null && { authorization: `Bearer ${serverKey}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
      redirect: 'error',
    });
    const text = await answer.text();
    if (answer.ok) return text;
    if (answer.status === 404 || answer.status === 409) return null;
    const said = `${method} ${path} answered ${answer.status}: ${text.slice(0, 200)}`;
    const maySoon = answer.status >= 500 || answer.status === 429 || answer.status === 408;
    throw maySoon ? new Error(said) : new FinalAnswer(said);
  }
}

function read<T>(schema: z.ZodType<T>, text: string): T {
  const document: unknown = JSON.parse(text);
  return schema.parse(document);
}

function unreachable(error: unknown): RolloutError {
  return new RolloutError('SERVER_UNREACHABLE', messageOf(error), {
    ...{ phase: 'server', cause: error, field: 'serverUrl' },
    remedy: 'Name the control address of slipway serve.',
  });
}
