/**
 * One query of the model, with its retries: three attempts with a growing wait between them, and that three times over. Only failures that their
 * own error calls retryable are tried again; a conversation that does not fit, a wrong request and a refused key never are.
 */
import type { Clock } from '../../core/clock.ts';
import { isRolloutError, RolloutError } from '../../core/errors.ts';
import { lowerId } from '../../core/ids.ts';
import type { Logger } from '../../core/logger.ts';
import type { ChatMessage } from '../../engines/chat-message.ts';
import type { Engine } from '../../engines/engine.ts';
import { collect, type ModelResult } from '../../engines/model-call.ts';
import { cacheMarked, wantsCacheMarks } from './cache-marks.ts';
import { endpointModel, type Terminus2Options } from './options.ts';

const innerAttempts = 3;
const outerAttempts = 3;

export interface ModelReply {
  readonly result: ModelResult;
  /** Of the attempt that answered. */
  readonly durationMs: number;
}

export interface QueryParts {
  readonly engine: Engine;
  readonly options: Terminus2Options;
  readonly clock: Clock;
  readonly logger: Logger;
}

export class ModelQueries {
  readonly #parts: QueryParts;
  readonly #isCacheMarked: boolean;
  #hasAnswered = false;

  constructor(parts: QueryParts) {
    this.#parts = parts;
    this.#isCacheMarked = wantsCacheMarks(parts.options.modelName);
  }

  /**
   * Rejects with the typed failure of the last attempt. At once when the signal fires: with the failure that was to be tried again, with
   * ENGINE_STALLED when no query was ever answered, else with the reason.
   */
  async ask(messages: readonly ChatMessage[], signal: AbortSignal): Promise<ModelReply> {
    const { clock, logger } = this.#parts;
    const attempts = innerAttempts * outerAttempts;
    let last: RolloutError | null = this.#hasAnswered ? null : neverAnswered();
    for (let attempt = 1; ; attempt += 1)
      try {
        const reply = await this.#askOnce(messages, signal);
        this.#hasAnswered = true;
        return reply;
      } catch (error) {
        if (signal.aborted) throw last ?? signal.reason;
        if (attempt >= attempts || !isRetryable(error)) throw error;
        logger.log(
          'warn',
          `terminus-2: model call ${attempt} of ${attempts} failed, trying again`,
          {
            code: error.code,
            problem: error.message,
          },
        );
        last = error;
        await clock.sleep(this.#waitMs(attempt), signal).catch(() => {
          throw error;
        });
      }
  }

  async #askOnce(messages: readonly ChatMessage[], signal: AbortSignal): Promise<ModelReply> {
    const { engine, options, clock } = this.#parts;
    const begun = clock.monotonicMs();
    const call = await engine.generate(
      {
        requestId: `terminus-2-${lowerId(20)}`,
        model: endpointModel(options.modelName),
        input: {
          kind: 'messages',
          messages: this.#isCacheMarked ? cacheMarked(messages) : messages,
        },
        sampling: options.temperature === null ? {} : { temperature: options.temperature },
        isStreaming: false,
        wantsTokens: options.collectsRolloutDetails,
        extraBody: options.call.body,
        headers: options.call.headers,
      },
      signal,
    );
    const result = await collect(call);
    if (result.finishReason === 'abort') throw aborted(result);
    return { result, durationMs: clock.monotonicMs() - begun };
  }

  /** The third attempt of a round is followed by the next round at once. */
  #waitMs(attempt: number): number {
    const { min, max } = this.#parts.options.retryWaitMs;
    const inRound = attempt % innerAttempts;
    return inRound === 0 ? 0 : Math.min(max, Math.max(min, 1000 * 2 ** (inRound - 1)));
  }
}

function isRetryable(error: unknown): error is RolloutError {
  return isRolloutError(error) && error.retryable;
}

function neverAnswered(): RolloutError {
  return new RolloutError('ENGINE_STALLED', 'the model had not answered one call by then', {
    phase: 'model-call',
  });
}

/** Somebody ended the request at the engine: what was sampled is a piece of a reply, not a reply. */
function aborted({ requestId }: ModelResult): RolloutError {
  return new RolloutError('ENGINE_STREAM_BROKEN', 'the engine aborted a reply before its end', {
    phase: 'model-call',
    detail: `request ${requestId}`,
  });
}
