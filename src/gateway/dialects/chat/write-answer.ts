/** An answer in the words of chat completions: a stream of chunks, each with what is new, then the reason of the end and the usage; or one object. */
import type { Answer, AnswerEvent, AnswerItem, AnswerUsage } from '../../items/answer.ts';
import type { AnswerHead, AnswerWriter, DialectProblem, SentEvent } from '../dialect.ts';
import { errorOf } from './problem.ts';
import type { ChatExtra } from './read-request.ts';

type Fields = Readonly<Record<string, unknown>>;
type ToolCall = Extract<AnswerItem, { readonly kind: 'tool-call' }>;

export class ChatWriter implements AnswerWriter {
  readonly closing = 'data: [DONE]\n\n';
  readonly #head: AnswerHead;
  readonly #extra: ChatExtra;
  #open: AnswerItem['kind'] | null = null;
  #calls = 0;

  constructor(head: AnswerHead, extra: ChatExtra) {
    this.#head = head;
    this.#extra = extra;
  }

  start(): readonly SentEvent[] {
    return [this.#delta({ role: 'assistant', content: '' })];
  }

  write(event: AnswerEvent): readonly SentEvent[] {
    switch (event.type) {
      case 'item-start': {
        const { item } = event;
        this.#open = item.kind;
        if (item.kind !== 'tool-call') return [];
        this.#calls += 1;
        return [this.#delta({ tool_calls: [{ index: this.#calls - 1, ...callOf(item) }] })];
      }
      case 'item-delta':
        return [this.#delta(this.#piece(event.delta))];
      case 'item-end':
        return [];
      case 'end':
        return this.#end(event.answer);
    }
  }

  keepAlive(): readonly SentEvent[] {
    return [this.#delta({})];
  }

  fail(problem: DialectProblem): readonly SentEvent[] {
    return [{ event: null, data: { error: errorOf(problem) } }];
  }

  whole(answer: Answer): Fields {
    const calls = answer.items.filter((item) => item.kind === 'tool-call');
    const text = textOf(answer, 'text');
    const reasoning = textOf(answer, 'reasoning');
    const message = {
      role: 'assistant',
      content: text === '' && calls.length > 0 ? null : text,
      ...(reasoning !== '' && { reasoning_content: reasoning }),
      ...(calls.length > 0 && { tool_calls: calls.map(callOf) }),
    };
    return {
      ...this.#envelope('chat.completion'),
      choices: [{ index: 0, message, logprobs: null, finish_reason: reasonOf(answer) }],
      ...(answer.usage !== null && { usage: usageOf(answer.usage) }),
    };
  }

  #piece(text: string): Fields {
    if (this.#open === 'reasoning') return { reasoning_content: text };
    if (this.#open === 'text') return { content: text };
    return { tool_calls: [{ index: this.#calls - 1, function: { arguments: text } }] };
  }

  #end(answer: Answer): readonly SentEvent[] {
    const last = this.#chunk([{ index: 0, delta: {}, finish_reason: reasonOf(answer) }]);
    if (!this.#extra.showsUsage || answer.usage === null) return [last];
    const { event, data } = this.#chunk([]);
    return [last, { event, data: { ...data, usage: usageOf(answer.usage) } }];
  }

  #delta(delta: Fields): SentEvent {
    return this.#chunk([{ index: 0, delta, finish_reason: null }]);
  }

  #chunk(choices: readonly Fields[]): SentEvent {
    return { event: null, data: { ...this.#envelope('chat.completion.chunk'), choices } };
  }

  #envelope(object: string): Fields {
    const { requestId, model, createdAt } = this.#head;
    const created = Math.floor(createdAt.getTime() / 1000);
    return { id: `chatcmpl-${requestId}`, object, created, model };
  }
}

function textOf({ items }: Answer, kind: 'text' | 'reasoning'): string {
  return items.map((item) => (item.kind === kind ? item.text : '')).join('');
}

function callOf({ callId, tool, arguments: text }: ToolCall): Fields {
  return { id: callId, type: 'function', function: { name: tool.name, arguments: text } };
}

function reasonOf({ finish }: Answer): string {
  switch (finish) {
    case 'stop':
    case 'stop-sequence':
      return 'stop';
    case 'tool-calls':
      return 'tool_calls';
    case 'length':
    case 'context':
      return 'length';
    case 'filter':
      return 'content_filter';
  }
}

function usageOf({ inputTokens, outputTokens, cachedTokens }: AnswerUsage): Fields {
  return {
    prompt_tokens: inputTokens,
    completion_tokens: outputTokens,
    total_tokens: inputTokens + outputTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens },
  };
}
