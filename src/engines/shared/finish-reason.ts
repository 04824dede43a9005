import type { FinishReason, ModelPart } from '../model-call.ts';
import type { AnswerBuilder } from './answer-builder.ts';
import { engineError, type AnswerOrigin } from './answer-error.ts';

const reasons: Readonly<Record<string, FinishReason>> = {
  stop: 'stop',
  eos: 'stop',
  end_turn: 'stop',
  length: 'length',
  max_tokens: 'length',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  abort: 'abort',
  content_filter: 'content_filter',
  context_length_exceeded: 'context',
  model_context_window_exceeded: 'context',
};

/** The last parts. A reason of the engine's own counts as `stop` and stands in `extra.finish_reason`; `error` is a failure. */
export function endOf(
  builder: AnswerBuilder,
  spelled: string,
  at: AnswerOrigin,
): readonly ModelPart[] {
  if (spelled === 'error')
    throw engineError('ENGINE_UNAVAILABLE', 'the engine failed while it sampled', at);
  const reason = Object.hasOwn(reasons, spelled) ? reasons[spelled] : undefined;
  if (reason === undefined) builder.addExtra({ finish_reason: spelled });
  return builder.end(reason ?? 'stop');
}
