/**
 * Conversations as agents have them, made of a seed: system turns, tools with schemas, calls with arguments of every kind of JSON, several results at once, thoughts or
 * none, text in many scripts. What renders these alike in two programs renders others alike too.
 */
import type { ChatMessage, ChatToolCall, ToolDefinition } from '../../engines/chat-message.ts';
import { seededRandom } from '../../engines/server/seeded.ts';
import type { Conversation } from '../codec.ts';

export interface ConversationOptions {
  readonly seed: number;
  readonly index: number;
  /** Roles that may stand behind an assistant's turn. */
  readonly roles: ReadonlySet<string>;
  /** Also texts that spell marks and control tokens. */
  readonly isHostile: boolean;
}

export interface RandomConversation extends Conversation {
  readonly toolsText: string;
}

const words = [
  ...[
    'the',
    'file',
    'is',
    'at',
    '/tmp/a b.txt',
    'def f(x):',
    'return',
    "it's",
    '"quoted"',
    'C:\\dir',
  ],
  ...[
    'naïve',
    'Straße',
    'Ωμέγα',
    'привет',
    '你好世界',
    '日本語テキスト',
    '한국어',
    'مرحبا',
    'ไทย',
    'हिन्दी',
  ],
  ...[
    '🙂',
    '👩‍👩‍👧',
    'e\u0301',
    'ﬁ',
    '\u00a0',
    '\u200b',
    '\u2028',
    '\u0085',
    '\ufeff',
    '\u0007',
    '𝒳',
    'İ',
  ],
  ...[
    '{"a": 1}',
    '[1, 2.0]',
    '<b>',
    '</div>',
    '&amp;',
    '{{ x }}',
    '{% if %}',
    '%s',
    '$HOME',
    '`ls`',
    '1.0',
    '3,14',
  ],
];
const hostileWords = [
  ...['<|im_end|>', '<|im_start|>', '<think>', '</think>', '<tool_call>', '</tool_call>'],
  ...['<tool_response>', '</tool_response>', '<|user|>', '<|observation|>', '[e~[', '<｜User｜>'],
  ...['<｜end▁of▁sentence｜>', '<|endoftext|>'],
];
/** As they stand in a text of JSON. */
const jsonNumbers = [
  ...[
    '0',
    '-1',
    '1.0',
    '100.0',
    '1e3',
    '1E-7',
    '0.1',
    '-0.0',
    '3.141592653589793',
    '1e22',
    '123456789012345678901',
  ],
  ...['2.5e-05', '0.00001', '1e16', '123456.789e-3', '-0', '5e-324', '1.7976931348623157e308'],
];
const keys = [
  'path',
  'cmd',
  'n',
  '10',
  '2',
  'naïve',
  'a b',
  'items',
  'keys',
  'nested',
  'ключ',
  'x-y',
];
const types = ['string', 'number', 'integer', 'boolean', 'array', 'object'];

export function randomConversation(options: ConversationOptions): RandomConversation {
  return new ConversationMaker(options).make();
}

class ConversationMaker {
  readonly #random: () => number;
  readonly #options: ConversationOptions;
  #callCount = 0;

  constructor(options: ConversationOptions) {
    this.#options = options;
    this.#random = seededRandom(options.seed, options.index);
  }

  make(): RandomConversation {
    const toolsText = `[${this.#times(this.#chance(0.7) ? 3 : 0, (index) => this.#toolJson(index)).join(', ')}]`;
    const tools = JSON.parse(toolsText) as ToolDefinition[];
    const isThinking = this.#chance(0.75);
    const messages: ChatMessage[] = [];
    if (this.#chance(0.6)) messages.push({ role: 'system', content: this.#text() });
    messages.push({ role: 'user', content: this.#text() });
    const rounds = this.#below(4);
    for (let round = 0; round <= rounds; round++)
      this.#round(messages, { tools, isThinking, isLast: round === rounds });
    return { messages, tools, toolsText, templateVariables: { enable_thinking: isThinking } };
  }

  #round(
    messages: ChatMessage[],
    turn: {
      readonly tools: readonly ToolDefinition[];
      readonly isThinking: boolean;
      readonly isLast: boolean;
    },
  ): void {
    const calls = turn.tools.length > 0 && this.#chance(0.6) ? this.#calls(turn.tools) : [];
    messages.push(this.#assistant(calls, turn.isThinking));
    for (const call of calls)
      messages.push({
        role: 'tool',
        content: this.#text(),
        tool_call_id: call.id,
        name: call.function.name,
      });
    const { roles } = this.#options;
    if (calls.length === 0 && (!turn.isLast || this.#chance(0.5)))
      messages.push({ role: 'user', content: this.#text() });
    else if (calls.length > 0 && roles.has('user') && this.#chance(0.2))
      messages.push({ role: 'user', content: this.#text() });
    if (roles.has('system') && this.#chance(0.1)) {
      messages.push({ role: 'system', content: this.#text() });
      messages.push({ role: 'user', content: this.#text() });
    }
  }

  #assistant(calls: readonly ChatToolCall[], isThinking: boolean): ChatMessage {
    const content = calls.length > 0 && this.#chance(0.4) ? '' : this.#text();
    return {
      role: 'assistant',
      content: content === '' && this.#chance(0.5) ? null : content,
      ...(isThinking && this.#chance(0.85) ? { reasoning_content: this.#text() } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    };
  }

  #calls(tools: readonly ToolDefinition[]): ChatToolCall[] {
    return this.#times(2, () => {
      this.#callCount += 1;
      const name = this.#pick(tools).function.name;
      return {
        id: `call_${this.#callCount}`,
        type: 'function',
        function: { name, arguments: this.#objectJson(0) },
      };
    });
  }

  #toolJson(index: number): string {
    const properties = this.#members(0, () => {
      const parts = [`"type": ${JSON.stringify(this.#pick(types))}`];
      if (this.#chance(0.5)) parts.push(`"description": ${JSON.stringify(this.#text())}`);
      if (this.#chance(0.3)) parts.push(`"default": ${this.#valueJson(1)}`);
      return `{${parts.join(', ')}}`;
    });
    const description = this.#chance(0.8) ? `"description": ${JSON.stringify(this.#text())}, ` : '';
    const parameters = `{"type": "object", "properties": ${properties}, "required": []}`;
    const strict = this.#chance(0.3) ? `, "strict": ${String(this.#chance(0.5))}` : '';
    return `{"type": "function", "function": {"name": "tool_${index}", ${description}"parameters": ${parameters}${strict}}}`;
  }

  #objectJson(depth: number): string {
    return this.#members(depth, () => this.#valueJson(depth + 1));
  }

  #members(depth: number, value: () => string): string {
    const chosen = keys.filter(() => this.#chance(depth === 0 ? 0.25 : 0.15));
    const ordered = this.#chance(0.5) ? chosen : chosen.reverse();
    return `{${ordered.map((key) => `${JSON.stringify(key)}: ${value()}`).join(', ')}}`;
  }

  #valueJson(depth: number): string {
    const kind = this.#below(depth > 2 ? 4 : 6);
    if (kind === 0) return this.#pick(jsonNumbers);
    if (kind === 1) return this.#pick(['true', 'false', 'null']);
    if (kind === 4) return `[${this.#times(3, () => this.#valueJson(depth + 1)).join(', ')}]`;
    if (kind === 5) return this.#objectJson(depth + 1);
    const text = JSON.stringify(this.#text());
    // Some clients escape what is not ASCII.
    return this.#chance(0.3) ? text.replace(/[\u0080-\uffff]/g, escaped) : text;
  }

  #text(): string {
    const some = this.#options.isHostile && this.#chance(0.1) ? hostileWords : words;
    const parts = this.#times(8, () => this.#pick(some));
    const joined = parts
      .map((part) => part + this.#pick([' ', ' ', ' ', '\n', '', '\n\n', '\t', '  ']))
      .join('');
    return this.#chance(0.3) ? joined : joined.trim();
  }

  /** At least one, unless `most` is none. */
  #times<T>(most: number, make: (index: number) => T): T[] {
    const count = most === 0 ? 0 : 1 + this.#below(most);
    return Array.from({ length: count }, (_, index) => make(index));
  }

  #pick<T>(from: readonly T[]): T {
    const item = from[this.#below(from.length)];
    if (item === undefined) throw new Error('nothing to pick from');
    return item;
  }

  #below(bound: number): number {
    return Math.floor(this.#random() * bound);
  }

  #chance(share: number): boolean {
    return this.#random() < share;
  }
}

const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
