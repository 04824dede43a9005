import { RolloutError } from '../../core/errors.ts';

/** What a family's template cannot render, in the template's own words. */
export function conversationError(
  problem: string,
  options: { readonly field?: string; readonly cause?: unknown } = {},
): RolloutError {
  const { field = 'messages', cause } = options;
  return new RolloutError('CONVERSATION_INVALID', problem, {
    phase: 'model-call',
    field,
    remedy: 'Send a conversation that the chat template of the model accepts.',
    ...(cause === undefined ? {} : { cause }),
  });
}
