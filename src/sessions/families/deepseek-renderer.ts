/**
 * DeepSeek's models have no chat template; a Python file of the checkpoint encodes their conversations. The order of things is ours here, the words that tell the
 * model of its tools are read from that file. Thoughts of earlier turns stay, so that histories are append-only: the encoders call that `drop_thinking: false`.
 */
import type { Conversation } from '../codec.ts';
import { dumpJson } from '../templates/python-json.ts';
import { assignedText, formatted } from '../templates/python-source.ts';
import { type Dict, isList, type Value } from '../templates/python-values.ts';
import { type Checkpoint, checkpointError, readOptional } from './checkpoint.ts';
import { conversationError } from './conversation-error.ts';
import type { TextRenderer, Variables } from './family.ts';
import { parsedArguments, templateMessages, templateTools } from './template-messages.ts';

const begin = '<｜begin▁of▁sentence｜>';
const end = '<｜end▁of▁sentence｜>';
const user = '<｜User｜>';
const assistant = '<｜Assistant｜>';
const dsml = '｜DSML｜';
const thinkOpen = '<think>';
const thinkClose = '</think>';

/** What the words of one version are called, and which blocks it knows. */
interface Version {
  readonly file: string;
  readonly toolWords: string;
  readonly callBlock: string;
  readonly render: (history: History) => string;
}

interface History {
  readonly messages: readonly Dict[];
  readonly isThinking: boolean;
  /** Whether thoughts before the last user go, as the encoders do it by default. */
  readonly dropsThoughts: boolean;
  readonly toolBlock: string | null;
  readonly effortWords: string;
  readonly callBlock: string;
}

const v32: Version = {
  file: 'encoding_dsv32.py',
  toolWords: 'TOOLS_SYSTEM_TEMPLATE',
  callBlock: 'function_calls',
  render: renderV32,
};
const v4: Version = {
  file: 'encoding_dsv4.py',
  toolWords: 'TOOLS_TEMPLATE',
  callBlock: 'tool_calls',
  render: renderV4,
};

export const deepseekV32 = (checkpoint: Checkpoint): Promise<TextRenderer> => open(checkpoint, v32);
export const deepseekV4 = (checkpoint: Checkpoint): Promise<TextRenderer> => open(checkpoint, v4);

async function open(checkpoint: Checkpoint, version: Version): Promise<TextRenderer> {
  const { dir } = checkpoint;
  const { file } = version;
  const source = await readOptional(dir, [`encoding/${file}`, file]);
  if (source === null) throw checkpointError(`${dir} has no encoding/${file}`);
  const toolWords = assignedText(source, version.toolWords);
  if (toolWords === null)
    throw checkpointError(`${dir}/encoding/${file} does not assign ${version.toolWords}`);
  const effortWords = assignedText(source, 'REASONING_EFFORT_MAX') ?? '';
  return (conversation) => {
    const mode = modeOf(conversation);
    return (
      begin +
      version.render({
        ...mode,
        messages: messagesOf(conversation),
        toolBlock: toolBlockOf(conversation, toolWords),
        effortWords: mode.isThinking && mode.effort === 'max' ? effortWords : '',
        callBlock: version.callBlock,
      })
    );
  };
}

function messagesOf(conversation: Conversation): readonly Dict[] {
  const messages = templateMessages(conversation.messages, 'text');
  if (conversation.tools.length === 0 || messages[0]?.get('role') === 'system') return messages;
  // The words on tools stand in a system message, be it empty.
  return [
    new Map<string, Value>([
      ['role', 'system'],
      ['content', ''],
    ]),
    ...messages,
  ];
}

function toolBlockOf(conversation: Conversation, words: string): string | null {
  if (conversation.tools.length === 0) return null;
  const schemas = templateTools(conversation.tools, conversation.toolsText ?? null).map((tool) =>
    dumpJson(tool.get('function') ?? null),
  );
  return formatted(
    words,
    new Map([
      ['tool_schemas', schemas.join('\n')],
      ['dsml_token', dsml],
      ['thinking_start_token', thinkOpen],
      ['thinking_end_token', thinkClose],
    ]),
  );
}

function modeOf({ templateVariables: variables }: Conversation): {
  readonly isThinking: boolean;
  readonly dropsThoughts: boolean;
  readonly effort: unknown;
} {
  return {
    isThinking: isThinkingIn(variables),
    dropsThoughts: variables['drop_thinking'] === true,
    effort: variables['reasoning_effort'] ?? null,
  };
}

/** One flag in place of its three names, true where none is given: engines look for thoughts in an answer by this one alone. */
export function withThinkingFlag(variables: Variables): Variables {
  const others = Object.entries(variables).filter(([name]) => !thinkingNames.includes(name));
  return { ...Object.fromEntries(others), thinking: isThinkingIn(variables) };
}

const thinkingNames: readonly string[] = ['thinking_mode', 'enable_thinking', 'thinking'];

function isThinkingIn(variables: Variables): boolean {
  const mode = variables['thinking_mode'];
  if (mode !== undefined && mode !== 'thinking' && mode !== 'chat')
    throw conversationError('thinking_mode is neither thinking nor chat', {
      field: 'chat_template_kwargs.thinking_mode',
    });
  const flag = variables['enable_thinking'] ?? variables['thinking'] ?? true;
  return mode === undefined ? flag !== false : mode === 'thinking';
}

const textIn = (message: Dict | undefined, name: string): string => {
  const value = message?.get(name);
  return typeof value === 'string' ? value : '';
};

const isUser = (message: Dict): boolean => message.get('role') === 'user';
const callsOf = (message: Dict | undefined): readonly Value[] => {
  const calls = message?.get('tool_calls') ?? null;
  return isList(calls) ? calls : [];
};

function renderV32(history: History): string {
  const { messages, isThinking, dropsThoughts } = history;
  const lastUser = messages.findLastIndex(isUser);
  const opens = (index: number): string =>
    isThinking && (!dropsThoughts || index >= lastUser) ? thinkOpen : thinkClose;
  const out = messages.map((message, index) => {
    const role = message.get('role');
    if (role === 'system') return systemText(message, index, history);
    if (role === 'user') return user + textIn(message, 'content') + assistant + opens(index);
    if (role === 'tool') return resultV32(messages, index, opens(index));
    const keeps = isThinking && (!dropsThoughts || index > lastUser);
    return assistantText(message, index, history, keeps);
  });
  return out.join('');
}

/** Results stand in one block, which ends behind the last one that was called for. */
function resultV32(messages: readonly Dict[], index: number, opens: string): string {
  let caller = index - 1;
  while (messages[caller]?.get('role') === 'tool') caller -= 1;
  const count = callsOf(messages[caller]).length;
  const order = index - caller;
  if (order > count)
    throw conversationError('a result of a tool stands where no tool was called', {
      field: `messages.${index}`,
    });
  const first = order === 1 ? '\n\n<function_results>' : '';
  const last = order === count ? `\n</function_results>\n\n${opens}` : '';
  return `${first}\n<result>${textIn(messages[index], 'content')}</result>${last}`;
}

function renderV4(history: History): string {
  const { isThinking, toolBlock } = history;
  // With tools the encoder never drops thoughts.
  const dropsThoughts = history.dropsThoughts && toolBlock === null;
  const turns = foldedTurns(history.messages);
  const lastUser = turns.findLastIndex(isUser);
  const out = turns.map((message, index) => {
    const effort = index === 0 ? history.effortWords : '';
    const next = turns[index + 1]?.get('role');
    const opensTurn = isUser(message) && (next === undefined || next === 'assistant');
    const opener = isThinking && (!dropsThoughts || index >= lastUser) ? thinkOpen : thinkClose;
    const behind = opensTurn ? assistant + opener : '';
    if (isUser(message)) return `${effort}${user}${textIn(message, 'content')}${behind}`;
    if (message.get('role') === 'system') return effort + systemText(message, index, history);
    const keeps = isThinking && (!dropsThoughts || index > lastUser);
    return effort + assistantText(message, index, history, keeps);
  });
  return out.join('');
}

/** Results of tools are parts of the user's turn beside them, in the order of the calls. */
function foldedTurns(messages: readonly Dict[]): readonly Dict[] {
  const turns: Dict[] = [];
  let parts: { readonly text: string; readonly callId: string | null }[] = [];
  let order = new Map<string, number>();
  const close = (): void => {
    if (parts.length === 0) return;
    const content = inCallOrder(parts, order).join('\n\n');
    turns.push(
      new Map<string, Value>([
        ['role', 'user'],
        ['content', content],
      ]),
    );
    parts = [];
  };
  for (const message of messages) {
    const role = message.get('role');
    const content = textIn(message, 'content');
    if (role === 'tool')
      parts.push({
        text: `<tool_result>${content}</tool_result>`,
        callId: textIn(message, 'tool_call_id'),
      });
    else if (role === 'user') parts.push({ text: content, callId: null });
    else {
      close();
      turns.push(message);
      const calls = callsOf(message);
      if (calls.length > 0) order = orderOfCalls(calls);
    }
  }
  close();
  return turns;
}

function orderOfCalls(calls: readonly Value[]): Map<string, number> {
  const order = new Map<string, number>();
  for (const [index, call] of calls.entries()) {
    const id = call instanceof Map ? textIn(call, 'id') : '';
    if (id !== '') order.set(id, index);
  }
  return order;
}

function inCallOrder(
  parts: readonly { readonly text: string; readonly callId: string | null }[],
  order: ReadonlyMap<string, number>,
): readonly string[] {
  const results = parts.filter(({ callId }) => callId !== null);
  if (results.length > 1 && order.size > 0)
    results.sort((a, b) => (order.get(a.callId ?? '') ?? 0) - (order.get(b.callId ?? '') ?? 0));
  const sorted = results.values();
  return parts.map((part) => (part.callId === null ? part : (sorted.next().value ?? part)).text);
}

function systemText(message: Dict, index: number, history: History): string {
  const content = textIn(message, 'content');
  return index === 0 && history.toolBlock !== null ? `${content}\n\n${history.toolBlock}` : content;
}

function assistantText(message: Dict, index: number, history: History, keeps: boolean): string {
  const thoughts = keeps ? textIn(message, 'reasoning_content') + thinkClose : '';
  const calls = callsOf(message).map((call, at) =>
    callText(call, `messages.${index}.tool_calls.${at}`),
  );
  const { callBlock } = history;
  const block =
    calls.length === 0
      ? ''
      : `\n\n<${dsml}${callBlock}>\n${calls.join('\n')}\n</${dsml}${callBlock}>`;
  return thoughts + textIn(message, 'content') + block + end;
}

function callText(call: Value, field: string): string {
  const given = call instanceof Map ? (call.get('function') ?? null) : null;
  const fields: Dict = given instanceof Map ? given : new Map<string, Value>();
  const name = textIn(fields, 'name');
  const values = parsedArguments(textIn(fields, 'arguments'), `${field}.function.arguments`);
  const parameters = [...values].map(([key, value]) => {
    const isText = typeof value === 'string';
    const text = isText ? value : dumpJson(value);
    return `<${dsml}parameter name="${key}" string="${String(isText)}">${text}</${dsml}parameter>`;
  });
  return `<${dsml}invoke name="${name}">\n${parameters.join('\n')}\n</${dsml}invoke>`;
}
