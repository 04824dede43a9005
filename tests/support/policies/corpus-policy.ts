/**
 * A policy for the mock engine that says what is hard to keep exact: text that merges in several ways, emoji, CRLF, think tags, words beside the
 * document, documents that do not parse. Each item of the corpus has its own number of turns; both are functions of the item's number alone.
 */
import { seededRandom } from '../random.ts';

interface Request {
  readonly messages: readonly { readonly role: string; readonly content: unknown }[];
  /** Assistant messages so far. */
  readonly turn: number;
}

interface Reply {
  readonly content: string;
  readonly reasoning?: string;
}

export const mostTurns = 30;

/** Calls that the item takes when nothing cuts it short: 2 to {@link mostTurns}. */
export function turnsOf(item: number): number {
  return 2 + Math.floor(seededRandom(item * 7919)() * (mostTurns - 1));
}

/** Stands in every reply, so that a line of the engine's log can be told to belong to an item and a turn. */
export const marker = (item: number, turn: number): string => `item ${item} turn ${turn}.`;

export const markerPattern = /item (\d+) turn (\d+)\./;

const pieces = [
  ...['ab', 'aba', 'ababab', 'aaaaaaa', 'the the', 'thethe', '....', '-----', '1234567890', '000'],
  ...['\r\n', '\r\n\r\n', '\n\n\n', '\t\t', '   ', ' ', '\u00a0', ' \r\n '],
  ...[
    '😀',
    '👩‍👩‍👧‍👦',
    '🇨🇭',
    'e\u0301',
    'é',
    'ß',
    'ﬁ',
    '汉字漢字',
    'العربية',
    'हिन्दी',
    '\u200d',
    '\ufeff',
  ],
  ...['{"', '"}', '\\n', '\\', '```json', '```', '<br/>', 'password=hunter2'],
] as const;

const thinking = ['<think>', '</think>', '<think>hm</think>', ' <think> '] as const;

export function hostileText(random: () => number, most: number): string {
  const count = Math.floor(random() * most);
  return Array.from({ length: count }, () => pieces[Math.floor(random() * pieces.length)]).join('');
}

export default function corpusPolicy({ messages, turn }: Request): Reply {
  const item = itemOf(messages);
  const random = seededRandom(item * 1_000 + turn + 1);
  const isEnding = turn >= turnsOf(item) - 2;
  const analysis = `${marker(item, turn)} ${hostileText(random, 12)}`;
  const document = JSON.stringify({
    analysis,
    plan: hostileText(random, 8),
    commands: isEnding || random() < 0.4 ? [] : [{ keystrokes: command(random), duration: 0 }],
    ...(isEnding && { task_complete: true }),
  });
  const reasoning = random() < 0.3 ? { reasoning: `hm, ${hostileText(random, 10)}` } : {};
  if (isEnding) return { content: document, ...reasoning };
  const kind = random();
  if (kind < 0.08)
    return { content: `${marker(item, turn)} ${hostileText(random, 20)}`, ...reasoning };
  if (kind < 0.16) {
    const tag = thinking[Math.floor(random() * thinking.length)] ?? '<think>';
    return {
      content: `${marker(item, turn)}${tag}${hostileText(random, 6)}${document}`,
      ...reasoning,
    };
  }
  if (kind < 0.4)
    return {
      content: `${hostileText(random, 6)}${document}${hostileText(random, 6)}`,
      ...reasoning,
    };
  return { content: document, ...reasoning };
}

function command(random: () => number): string {
  const words = ['true', ': é😀', 'printf "%s\\n" ab aba', 'echo 1234567890', 'pwd'];
  return `${words[Math.floor(random() * words.length)] ?? 'true'}\n`;
}

function itemOf(messages: Request['messages']): number {
  const [, item] = /corpus item (\d+)/.exec(JSON.stringify(messages)) ?? [];
  if (item === undefined) throw new Error('the messages name no item of the corpus');
  return Number(item);
}
