/** One attempt to bring a callback to its receiver. */
import type { LookupFunction } from 'node:net';
import { Agent, type Dispatcher } from 'undici';
import type { Clock } from '../core/clock.ts';
import { cutText } from '../core/cut-text.ts';
import { messageOf, RolloutError } from '../core/errors.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import type { NewDelivery } from '../store/rollout-store.ts';
import { urlParts, urlRefused, type UrlPolicy } from '../wire/url-policy.ts';
import { retryAfterMs } from './retry-schedule.ts';

export type AttemptResult =
  | {
      readonly kind: 'taken';
      /** Of the acknowledgement; null = none could be read. */
      readonly text: string | null;
      readonly isDown: false;
    }
  | {
      readonly kind: 'failed';
      readonly error: RolloutError;
      /** Whether another attempt makes sense. */
      readonly isFinal: boolean;
      readonly retryAfterMs: number | null;
      /** The receiver did not answer, or says that it cannot: it would not take others either. */
      readonly isDown: boolean;
    };

export interface CallbackHttpOptions {
  readonly policy: UrlPolicy;
  readonly clock: Clock;
  readonly userAgent: string;
  readonly attemptMs: number;
  readonly lookup: LookupFunction;
}

/** A report may hold the token ids of a whole rollout. */
const ackBytes = 32 * 2 ** 20;
const excerptChars = 200;
const retriedStatuses: readonly number[] = [429, 500, 502, 503, 504];

export class CallbackHttp {
  readonly #options: CallbackHttpOptions;
  readonly #agent: Agent;

  constructor(options: CallbackHttpOptions) {
    this.#options = options;
    this.#agent = new Agent({
      connections: null,
      pipelining: 1,
      allowH2: false,
      // The attempt's own deadline bounds all of these.
      headersTimeout: 0,
      bodyTimeout: 0,
      // Below the five seconds after which uvicorn closes idle connections.
      keepAliveTimeout: 4_000,
      keepAliveMaxTimeout: 4_000,
      connect: { timeout: options.attemptMs, lookup: options.policy.guard(options.lookup) },
    });
  }

  /** Rejects only with the reason of `signal`. */
  async attempt(delivery: NewDelivery, signal: AbortSignal): Promise<AttemptResult> {
    const { clock, attemptMs, policy } = this.#options;
    const problem = policy.problem(delivery.url);
    if (problem !== null) return refused(urlRefused('its URL', problem));
    using link = new LinkedAbort([signal]);
    const timer = clock.sleep(attemptMs, link.signal).then(
      () => link.abort(failure(`no answer within ${attemptMs / 1_000} s`)),
      () => undefined, // the attempt was over first
    );
    try {
      return await this.#exchange(delivery, link.signal);
    } catch (error) {
      signal.throwIfAborted();
      return failed(link.signal.aborted ? link.signal.reason : error);
    } finally {
      link.abort(new Error('the attempt is over'));
      await timer;
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #exchange(delivery: NewDelivery, signal: AbortSignal): Promise<AttemptResult> {
    const { origin, path, authorization } = urlParts(delivery.url) ?? nowhere;
    const auth = delivery.authorization ?? authorization;
    const answer = await this.#agent.request({
      origin,
      path,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'user-agent': this.#options.userAgent,
        'idempotency-key': delivery.key,
        ...(auth !== null && { authorization: auth }),
      },
      body: Buffer.from(delivery.body),
      signal,
    });
    const status = answer.statusCode;
    if (status >= 200 && status < 300)
      return { kind: 'taken', text: await bodyText(answer, ackBytes), isDown: false };
    const text = (await bodyText(answer, 4_096)) ?? '';
    const secrets = [auth ?? '', (auth ?? '').replace(/^\S+ /, '')];
    const header = answer.headers['retry-after'];
    const retryAfter = typeof header === 'string' ? header : undefined;
    return {
      kind: 'failed',
      error: failure(`answered ${status}${excerpt(text, secrets)}`),
      isFinal: !retriedStatuses.includes(status),
      retryAfterMs: retryAfterMs(retryAfter, this.#options.clock.now()),
      isDown: retriedStatuses.includes(status) && status !== 500,
    };
  }
}

const nowhere = { origin: 'http://0.0.0.0', path: '/', authorization: null };

function failure(message: string, cause?: unknown): RolloutError {
  return new RolloutError('CALLBACK_FAILED', message, { phase: 'callback', cause });
}

/** What is wrong with the request itself will be wrong the next time too. */
function failed(error: unknown): AttemptResult {
  const refusal = causes(error).find((each) => each instanceof RolloutError);
  if (refusal?.code === 'CALLBACK_URL_REFUSED') return refused(refusal);
  const isFinal = causes(error).some(
    (each) => each instanceof Error && 'code' in each && each.code === 'UND_ERR_INVALID_ARG',
  );
  return {
    kind: 'failed',
    error: refusal ?? failure(describe(error), error),
    isFinal,
    retryAfterMs: null,
    isDown: !isFinal,
  };
}

function refused(error: RolloutError): AttemptResult {
  return { kind: 'failed', error, isFinal: true, retryAfterMs: null, isDown: false };
}

function causes(error: unknown): readonly unknown[] {
  const found: unknown[] = [];
  for (let each = error; each instanceof Error && found.length < 10; each = each.cause)
    found.push(each, ...(each instanceof AggregateError ? (each.errors as unknown[]) : []));
  return found;
}

/** Several addresses of a name that all refuse come as one error without a message. */
function describe(error: unknown): string {
  const texts = causes(error).map(messageOf);
  return `not reached: ${texts.find((text) => text !== '') ?? 'connection failed'}`;
}

function excerpt(text: string, secrets: readonly string[]): string {
  let plain = text.replace(/[\u0000-\u0020\u007f]+/g, ' ').trim();
  for (const secret of secrets) if (secret.length > 3) plain = plain.replaceAll(secret, '…');
  // A cut between the halves of a character leaves none of it.
  const cut = cutText(plain, excerptChars);
  return cut === '' ? '' : `: ${cut}`;
}

/** null for what is longer or breaks off: the status has said what matters. */
async function bodyText(answer: Dispatcher.ResponseData, limit: number): Promise<string | null> {
  const pieces: Buffer[] = [];
  let size = 0;
  try {
    for await (const piece of answer.body as AsyncIterable<Buffer>) {
      size += piece.length;
      if (size > limit) return null;
      pieces.push(piece);
    }
  } catch {
    return null;
  }
  return Buffer.concat(pieces).toString('utf8');
}
