/** Items of an answer as they stand in `output`: one function for the streamed and the whole form, so that both have the same ids, order and content. */
import type { AnswerItem } from '../../items/answer.ts';
import { sealReasoning } from './reasoning-carrier.ts';

export type ItemStatus = 'in_progress' | 'completed' | 'incomplete';

export type OutputItem = Readonly<Record<string, unknown>> & { readonly id: string };

export interface OutputItemOptions {
  readonly requestId: string;
  readonly index: number;
  readonly status: ItemStatus;
  readonly hasCarrier: boolean;
}

/** While in progress an item has no content yet: its parts and texts come by events of their own. */
export function outputItem(item: AnswerItem, options: OutputItemOptions): OutputItem {
  const { status, hasCarrier } = options;
  const isOpen = status === 'in_progress';
  const id = `${prefixOf(item)}_${options.requestId}_${options.index}`;
  switch (item.kind) {
    case 'reasoning':
      return {
        id,
        type: 'reasoning',
        summary: isOpen ? [] : [summaryPart(item.text)],
        ...(hasCarrier && !isOpen && { encrypted_content: sealReasoning(item.text) }),
        status,
      };
    case 'text':
      return {
        id,
        type: 'message',
        status,
        role: 'assistant',
        content: isOpen ? [] : [textPart(item.text)],
      };
    case 'tool-call': {
      const { name, namespace } = item.tool;
      const called = { call_id: item.callId, name, ...(namespace !== null && { namespace }) };
      return item.form === 'custom'
        ? { id, type: 'custom_tool_call', status, ...called, input: isOpen ? '' : item.arguments }
        : {
            id,
            type: 'function_call',
            status,
            ...called,
            arguments: isOpen ? '' : argumentsOf(item.arguments),
          };
    }
  }
}

/** Clients parse arguments as JSON: a call that was sampled without any has an empty object. */
export function argumentsOf(sampled: string): string {
  return sampled === '' ? '{}' : sampled;
}

export function textPart(text: string): Readonly<Record<string, unknown>> {
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

export function summaryPart(text: string): Readonly<Record<string, unknown>> {
  return { type: 'summary_text', text };
}

function prefixOf(item: AnswerItem): string {
  if (item.kind === 'reasoning') return 'rs';
  if (item.kind === 'text') return 'msg';
  return item.form === 'custom' ? 'ctc' : 'fc';
}
