/** Calls the agent's abort hook, if there is one, within its own deadline. Whatever it does, the abort goes on. */
import { messageOf } from '../../core/errors.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { CollectorParts } from '../collector-parts.ts';
import type { AbortHook, AbortHookRequest } from './abort-hook.ts';
import type { HookReceipt, HookState, RolloutConfirmation } from './abort-receipt.ts';

export interface HookCall {
  readonly receipt: HookReceipt;
  readonly confirmed: ReadonlyMap<string, RolloutConfirmation>;
}

type HookParts = Pick<CollectorParts, 'findHook' | 'options' | 'clock' | 'logger'>;

export async function callHook(request: AbortHookRequest, parts: HookParts): Promise<HookCall> {
  const { findHook, options, clock, logger } = parts;
  const beganMs = clock.monotonicMs();
  const call = (state: HookState, rest: Partial<HookReceipt> = {}): HookCall => ({
    receipt: {
      ...{ state, problem: null, cancelled: null },
      ...rest,
      durationMs: clock.monotonicMs() - beganMs,
    },
    confirmed: new Map(),
  });
  const warn = (state: HookState, problem: string): HookCall => {
    logger.log('warn', 'the abort hook of the agent plugin did not do its part', {
      state,
      problem,
    });
    return call(state, { problem });
  };
  if (findHook === null) return call('none');
  const { hookMs } = options.abort;
  using deadline = new LinkedAbort([], {
    ms: hookMs,
    reason: () => new Error(`not done within ${hookMs} ms`),
  });
  const late = lateness(deadline.signal);
  let hook: AbortHook | null;
  try {
    hook = await Promise.race([findHook(), late]);
  } catch (error) {
    return warn(deadline.signal.aborted ? 'timed-out' : 'not-loaded', messageOf(error));
  }
  if (hook === null) {
    logger.log('debug', 'the agent plugin has no abort');
    return call('absent');
  }
  try {
    const answer = await Promise.race([hook(request, deadline.signal), late]);
    const confirmed = new Map(answer.confirmed.map((each) => [each.rolloutId, each] as const));
    return { ...call('called', { cancelled: answer.cancelled }), confirmed };
  } catch (error) {
    return warn(deadline.signal.aborted ? 'timed-out' : 'failed', messageOf(error));
  }
}

function lateness(signal: AbortSignal): Promise<never> {
  const late = Promise.withResolvers<never>();
  late.promise.catch(() => undefined);
  signal.addEventListener('abort', () => late.reject(signal.reason as Error), { once: true });
  return late.promise;
}
