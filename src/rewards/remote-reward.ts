/**
 * A reward model behind HTTP: `{prompt, response, label}` is posted, and the JSON of the answer is the reward. What does not come within the limit, answers with a
 * status of 5xx or 429, or breaks off, is asked again; any other refusal is final.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { RolloutError } from '../core/errors.ts';
import { LinkedAbort } from '../core/linked-abort.ts';
import type { RewardSample, RewardValue } from './reward.ts';

export interface RemoteRewardOptions {
  readonly url: string;
  /** Of one attempt. */
  readonly timeoutMs: number;
  /** The first included. */
  readonly attempts: number;
  /** Before the second attempt; it doubles from one to the next. */
  readonly pauseMs: number;
  readonly fetch: typeof fetch;
}

/** REWARD_REMOTE_FAILED after the last attempt; the reason of `signal` where that ends it. */
export async function remoteReward(
  sample: Pick<RewardSample, 'prompt' | 'response' | 'label'>,
  options: RemoteRewardOptions,
  signal: AbortSignal,
): Promise<RewardValue> {
  const { prompt, response, label } = sample;
  const body = JSON.stringify({ prompt, response, label });
  for (let attempt = 1; ; attempt++) {
    try {
      return await askOnce(body, options, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof RolloutError) || !error.retryable || attempt >= options.attempts)
        throw error;
    }
    await delay(options.pauseMs * 2 ** (attempt - 1), undefined, { signal });
  }
}

async function askOnce(
  body: string,
  options: RemoteRewardOptions,
  signal: AbortSignal,
): Promise<RewardValue> {
  using limit = new LinkedAbort([signal], {
    ms: options.timeoutMs,
    reason: () => remoteError(`gave no reward within ${options.timeoutMs} ms`, true),
  });
  try {
    const answer = await options.fetch(options.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      signal: limit.signal,
    });
    const text = await answer.text();
    if (!answer.ok)
      throw remoteError(`answered ${answer.status}`, answer.status >= 500 || answer.status === 429);
    return readReward(text);
  } catch (error) {
    limit.signal.throwIfAborted();
    throw error instanceof RolloutError ? error : remoteError('did not answer', true, error);
  }
}

function readReward(text: string): RewardValue {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw remoteError('answered something other than JSON', false, error);
  }
  if (typeof value === 'number' && Number.isFinite(value)) return value;
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    return value as Readonly<Record<string, unknown>>;
  throw remoteError('answered neither a finite number nor an object', false);
}

function remoteError(what: string, retryable: boolean, cause?: unknown): RolloutError {
  return new RolloutError('REWARD_REMOTE_FAILED', `The reward model ${what}.`, {
    phase: 'verifier',
    field: 'rewards.url',
    remedy: 'See whether the reward model runs, and whether its address and its limits are right.',
    retryable,
    cause,
  });
}
