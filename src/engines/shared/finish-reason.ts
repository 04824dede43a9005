import type { FinishReason } from '../model-call.ts';

const reasons: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  eos: 'stop',
  end_turn: 'stop',
  length: 'length',
  max_tokens: 'length',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  abort: 'abort',
};

/** `isKnown` is false for a reason of the engine's own; its sampling ended all the same. */
export function finishReasonOf(spelled: string): {
  readonly reason: FinishReason;
  readonly isKnown: boolean;
} {
  const reason = Object.hasOwn(reasons, spelled) ? reasons[spelled] : undefined;
  return { reason: reason ?? 'stop', isKnown: reason !== undefined };
}
