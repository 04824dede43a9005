/** Messages of requests as keys: equal for what every client may spell in another way, different for what a model would see. */
import { hash } from 'node:crypto';
import type { CallMessage, SampledWords } from './forest-call.ts';

/** A key for each front of the conversation: the n-th stands for its first n messages. `before`: the key of what stands before `messages`. */
export function frontKeys(messages: readonly CallMessage[], before = ''): readonly string[] {
  const keys: string[] = [];
  let key = before;
  for (const message of messages) {
    key = hash('sha1', `${key}\n${messageText(message)}`, 'base64');
    keys.push(key);
  }
  return keys;
}

/** Equal for a sampled answer and for the message in which a client sends it back; null = it says nothing. */
export function answerKey({ text, toolArguments }: SampledWords): string | null {
  const spoken = text.trim();
  if (spoken === '' && toolArguments.length === 0) return null;
  return hash('sha1', JSON.stringify([spoken, toolArguments]), 'base64');
}

export function wordsOf(message: CallMessage): SampledWords {
  const { tool_calls: calls } = message;
  const toolArguments = (Array.isArray(calls) ? (calls as unknown[]) : []).map((call) => {
    const { arguments: given } = fieldsOf(fieldsOf(call)['function']);
    return typeof given === 'string' ? given : JSON.stringify(given ?? null);
  });
  return { text: contentTexts(message).join('\n'), toolArguments };
}

/** The texts of a message's content, part by part. */
export function contentTexts({ content }: CallMessage): readonly string[] {
  if (typeof content === 'string') return [content];
  if (!Array.isArray(content)) return [];
  return (content as unknown[])
    .map((part) => fieldsOf(part)['text'])
    .filter((text) => typeof text === 'string');
}

/** All strings inside the JSON of arguments; of text that is none, the text. */
export function stringsIn(text: string): readonly string[] {
  try {
    const found: string[] = [];
    JSON.parse(text, (_key, value: unknown) => {
      if (typeof value === 'string') found.push(value);
      return value;
    });
    return found;
  } catch {
    return [text];
  }
}

function messageText(message: CallMessage): string {
  const { role, content, reasoning_content: reasoning, tool_calls: calls } = message;
  return JSON.stringify([role, saidOf(content), saidOf(reasoning), saidOf(calls)], (key, value) =>
    key === 'cache_control' || key === 'index' ? undefined : (value as unknown),
  );
}

/** What is empty says the same as what is absent. */
function saidOf(value: unknown): unknown {
  const isEmpty =
    value === undefined || value === '' || (Array.isArray(value) && value.length === 0);
  return isEmpty ? null : value;
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null
    ? (value as Readonly<Record<string, unknown>>)
    : {};
}
