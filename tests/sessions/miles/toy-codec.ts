/**
 * A family over bytes, for tests: exact and small. Turns open with a token for their role; a closed turn ends with END and a newline that only the template
 * writes. With `opener` the model stops at the opener of the next turn instead, which the template may replace by another.
 */
import type { ChatCodec, Conversation } from '../../../src/sessions/codec.ts';
import type { ChatMessage } from '../../../src/engines/chat-message.ts';
import { conversationError } from '../../../src/sessions/families/conversation-error.ts';

export const toyIds = { system: 256, user: 257, assistant: 258, tool: 259, end: 260 } as const;
const names = ['<system>', '<user>', '<assistant>', '<tool>', '<end>'];

export interface ToyOptions {
  readonly boundary?: 'closed' | 'opener';
  readonly family?: string;
  readonly maxTrim?: number;
  readonly appendRoles?: readonly string[];
  readonly fixedVariables?: Readonly<Record<string, unknown>>;
  readonly engineVariables?: ChatCodec['engineVariables'];
}

export const bytesOf = (text: string): number[] => [...Buffer.from(text)];

export function toyCodec(options: ToyOptions = {}): ChatCodec {
  const isOpener = options.boundary === 'opener';
  const turn = (message: ChatMessage): number[] => {
    const { role, content, tool_calls: calls = [] } = message;
    if (role === 'developer') throw conversationError('Unexpected message role.');
    const text = typeof content === 'string' ? content : '';
    const called = calls.map(({ function: called }) => `[${called.name} ${called.arguments}]`);
    const body = bytesOf(text + called.join(''));
    return [toyIds[role], ...body, ...(isOpener ? [] : [toyIds.end, 10])];
  };
  const render = ({ messages, tools }: Conversation, opensTurn: boolean): number[] => [
    ...(tools.length > 0 ? [toyIds.system, ...bytesOf(JSON.stringify(tools)), toyIds.end] : []),
    ...messages.flatMap(turn),
    ...(opensTurn ? [toyIds.assistant] : []),
  ];
  const decode = (ids: Int32Array): string => {
    const parts: Buffer[] = [];
    for (const id of ids)
      parts.push(id < 256 ? Buffer.of(id) : Buffer.from(names[id - 256] ?? '<?>'));
    return Buffer.concat(parts).toString();
  };
  return {
    family: options.family ?? 'toy',
    maxTrim: options.maxTrim ?? (isOpener ? 1 : 0),
    appendRoles: new Set(options.appendRoles ?? ['tool', 'user', 'system', 'assistant']),
    fixedVariables: options.fixedVariables ?? {},
    assistantStart: options.family === 'default' ? null : '<assistant>',
    engineVariables: options.engineVariables ?? ((variables) => variables),
    render(conversation, { opensTurn }) {
      const ids = Int32Array.from(render(conversation, opensTurn));
      return { ids, text: decode(ids) };
    },
    renderSuffix(conversation, prefix) {
      const last = prefix.ids.at(-1) ?? -1;
      const appended = conversation.messages.slice(prefix.messages);
      const rendered = render({ ...conversation, messages: appended, tools: [] }, true);
      const isClosed = isOpener || last === toyIds.end;
      const between = isOpener ? [] : isClosed ? [10] : [toyIds.end, 10];
      const ids = Int32Array.from([...between, ...rendered]);
      const isSampledOpener = isOpener && last >= 256 && last !== toyIds.end;
      return { ids, text: decode(ids), trimmed: isSampledOpener ? 1 : 0 };
    },
    parser() {
      throw new Error('turns of the toy family are not parsed');
    },
    isEnd: (id) => (isOpener ? id === toyIds.user || id === toyIds.tool : id === toyIds.end),
    isTrailing: (id) => (isOpener ? id === toyIds.user || id === toyIds.tool : id === 10),
    isCut: (id) => id >= 256,
    decode,
  };
}
