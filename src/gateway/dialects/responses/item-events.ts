/** The events between `output_item.added` and `output_item.done` of an item: its parts as they open, grow and close. */
import type { AnswerItem } from '../../items/answer.ts';
import { argumentsOf, summaryPart, textPart } from './output-item.ts';

/** An event without what all events of an item have in common. */
export interface ItemEvent {
  readonly type: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

const inText = { content_index: 0 };
const inSummary = { summary_index: 0 };

export function openingEvents(item: AnswerItem): readonly ItemEvent[] {
  if (item.kind === 'text') return [event('content_part.added', { ...inText, part: textPart('') })];
  if (item.kind === 'reasoning')
    return [event('reasoning_summary_part.added', { ...inSummary, part: summaryPart('') })];
  return [];
}

export function deltaEvent(item: AnswerItem, delta: string): ItemEvent {
  if (item.kind === 'text') return event('output_text.delta', { ...inText, delta, logprobs: [] });
  if (item.kind === 'reasoning')
    return event('reasoning_summary_text.delta', { ...inSummary, delta });
  return event(
    item.form === 'custom' ? 'custom_tool_call_input.delta' : 'function_call_arguments.delta',
    { delta },
  );
}

/** `item` with all its text. */
export function closingEvents(item: AnswerItem): readonly ItemEvent[] {
  if (item.kind === 'text')
    return [
      event('output_text.done', { ...inText, text: item.text, logprobs: [] }),
      event('content_part.done', { ...inText, part: textPart(item.text) }),
    ];
  if (item.kind === 'reasoning')
    return [
      event('reasoning_summary_text.done', { ...inSummary, text: item.text }),
      event('reasoning_summary_part.done', { ...inSummary, part: summaryPart(item.text) }),
    ];
  if (item.form === 'custom')
    return [event('custom_tool_call_input.done', { input: item.arguments })];
  const complete = argumentsOf(item.arguments);
  return [
    // What nothing was sampled of has to be said once too: clients add up the deltas.
    ...(item.arguments === '' ? [deltaEvent(item, complete)] : []),
    event('function_call_arguments.done', { name: item.tool.name, arguments: complete }),
  ];
}

function event(name: string, fields: ItemEvent['fields']): ItemEvent {
  return { type: `response.${name}`, fields };
}
