import type {
  Conversation,
  ConversationItem,
  InputPart,
  ToolSpec,
} from '../../../src/gateway/items/conversation.ts';

export const text = (said: string): InputPart => ({ type: 'text', text: said });
export const image = (url: string): InputPart => ({ type: 'image', url });

type Role = Extract<ConversationItem, { readonly kind: 'message' }>['role'];

export function says(role: Role, ...parts: readonly (string | InputPart)[]): ConversationItem {
  return {
    kind: 'message',
    role,
    parts: parts.map((part) => (typeof part === 'string' ? text(part) : part)),
  };
}

export function thinks(said: string): ConversationItem {
  return { kind: 'reasoning', text: said, opaque: null };
}

export function calls(callId: string, name = 'run', given = '{}'): ConversationItem {
  const tool = { name, namespace: null };
  return { kind: 'tool-call', callId, tool, form: 'function', arguments: given };
}

export function returns(
  callId: string,
  ...parts: readonly (string | InputPart)[]
): Extract<ConversationItem, { readonly kind: 'tool-result' }> {
  const all = parts.map((part) => (typeof part === 'string' ? text(part) : part));
  return { kind: 'tool-result', callId, parts: all, isError: false };
}

export function toolSpec(name: string, rest: Partial<ToolSpec> = {}): ToolSpec {
  const none = { namespace: null, description: null, parameters: null, isStrict: null };
  return { ...none, name, form: 'function', ...rest };
}

export function conversation(fields: Partial<Conversation>): Conversation {
  return {
    model: null,
    items: [says('user', 'Hello')],
    tools: [],
    toolChoice: null,
    allowsParallelToolCalls: null,
    sampling: {},
    format: null,
    reasoningEffort: null,
    isStreaming: true,
    ...fields,
  };
}
