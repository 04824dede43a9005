import { RolloutError } from '../../../core/errors.ts';
import type { Vocabulary } from '../token-model.ts';

/** Ids that structure a chat. null = the vocabulary has no such token. */
export interface ChatMarkers {
  readonly turnStart: number;
  readonly turnEnd: number;
  readonly think: { readonly start: number; readonly end: number } | null;
  readonly toolCall: { readonly start: number; readonly end: number } | null;
}

/** CONFIG_INVALID when the vocabulary cannot delimit turns. */
export function chatMarkers(vocabulary: Vocabulary): ChatMarkers {
  const turn = pair(vocabulary, '<|im_start|>', '<|im_end|>');
  if (turn === null)
    throw new RolloutError('CONFIG_INVALID', 'the vocabulary has no <|im_start|> and <|im_end|>', {
      phase: 'config',
      field: '--tokenizer',
      remedy: 'Name the vocabulary of a model that speaks ChatML, for example one of Qwen.',
    });
  return {
    turnStart: turn.start,
    turnEnd: turn.end,
    think: pair(vocabulary, '<think>', '</think>'),
    toolCall: pair(vocabulary, '<tool_call>', '</tool_call>'),
  };
}

function pair(vocabulary: Vocabulary, startName: string, endName: string): ChatMarkers['think'] {
  const start = idOf(vocabulary, startName);
  const end = idOf(vocabulary, endName);
  return start === null || end === null ? null : { start, end };
}

function idOf(vocabulary: Vocabulary, name: string): number | null {
  const [id, ...more] = vocabulary.encode(name, { parsesSpecial: true });
  return id === undefined || more.length > 0 ? null : id;
}
