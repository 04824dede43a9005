/**
 * What a client's call is for, by what the client is known to say. A rule holds for one program, told by its `user-agent`, so that nothing an agent works on
 * turns its turns into asides. The phrases are those of the versions that `docs/gateway.md` names; a call that no rule knows is a turn.
 */
import { listOf, recordOf, textOf, type JsonRecord } from '../../engines/shared/json.ts';
import type { CallPurpose } from './call-capture.ts';

interface Phrase {
  readonly client: RegExp;
  readonly purpose: 'title' | 'summary';
  /** Whose words: of the system, or of the last message of the user. */
  readonly of: 'system' | 'user';
  readonly says: string;
}

const claudeCode = /^claude-cli\//i;
const openCode = /^opencode\//i;
const codex = /^codex[_-]/i;
const qwenCode = /^qwencode\//i;

const phrases: readonly Phrase[] = [
  { client: claudeCode, purpose: 'summary', of: 'system', says: 'tasked with summarizing' },
  { client: claudeCode, purpose: 'summary', of: 'user', says: 'create a detailed summary of' },
  { client: openCode, purpose: 'title', of: 'system', says: 'You are a title generator' },
  { client: openCode, purpose: 'summary', of: 'system', says: 'context summarization agent' },
  { client: codex, purpose: 'summary', of: 'user', says: 'CONTEXT CHECKPOINT COMPACTION' },
  { client: qwenCode, purpose: 'summary', of: 'system', says: 'summarizes internal chat history' },
];

/** A phrase stands at the beginning of what is said: further down it may be what the agent reads. */
const beginning = 450;

/** `body`: as it goes up, in the shape of chat completions. */
export function purposeOf(body: JsonRecord | null, client: string | null): CallPurpose {
  if (body === null || client === null) return 'turn';
  if (claudeCode.test(client)) {
    if (body['max_tokens'] === 1 && !hasTools(body)) return 'probe';
    if (asksForTitle(body) && !hasTools(body)) return 'title';
  }
  const found = phrases.find(
    (phrase) => phrase.client.test(client) && spoken(body, phrase.of).includes(phrase.says),
  );
  return found?.purpose ?? 'turn';
}

function hasTools(body: JsonRecord): boolean {
  return (listOf(body['tools']) ?? []).length > 0;
}

/** An answer that is to be an object with nothing but a title. */
function asksForTitle(body: JsonRecord): boolean {
  const format = recordOf(recordOf(body['response_format'])?.['json_schema']);
  const properties = recordOf(recordOf(format?.['schema'])?.['properties']);
  return properties !== null && Object.keys(properties).join() === 'title';
}

function spoken(body: JsonRecord, role: 'system' | 'user'): string {
  const messages = (listOf(body['messages']) ?? []).map(recordOf);
  if (role === 'system') {
    const [first] = messages;
    const isLeading = first?.['role'] === 'system' || first?.['role'] === 'developer';
    return isLeading ? contentOf(first) : '';
  }
  const last = messages.at(-1);
  return last?.['role'] === 'user' ? contentOf(last) : '';
}

function contentOf(message: JsonRecord): string {
  const { content } = message;
  if (typeof content === 'string') return content.slice(0, beginning);
  const texts = (listOf(content) ?? []).map((part) => textOf(recordOf(part)?.['text']) ?? '');
  return texts.map((text) => text.slice(0, beginning)).join('\n');
}
