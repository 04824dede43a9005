/**
 * An answer in the words of Messages. A stream is `message_start`, then each item as one block (start, deltas, stop, strictly one after another, numbered from
 * 0 without gaps), then `message_delta` with the reason and the usage, then `message_stop`; or, where it breaks off, `error` and nothing after it. `message_delta`
 * waits for the end of the answer, since engines tell the usage last.
 */
import { recordOf } from '../../../engines/shared/json.ts';
import type { Answer, AnswerEvent, AnswerItem, AnswerUsage } from '../../items/answer.ts';
import type { AnswerHead, AnswerWriter, DialectProblem, SentEvent } from '../dialect.ts';
import { streamedErrorOf } from './problem.ts';
import type { MessagesExtra } from './read-request.ts';
import { signatureOf } from './thinking-signature.ts';

type Fields = Readonly<Record<string, unknown>>;

export class MessageWriter implements AnswerWriter {
  readonly #head: AnswerHead;
  readonly #extra: MessagesExtra;
  #state: 'new' | 'open' | 'over' = 'new';
  #openBlock: { readonly index: number; readonly kind: AnswerItem['kind'] } | null = null;

  constructor(head: AnswerHead, extra: MessagesExtra) {
    this.#head = head;
    this.#extra = extra;
  }

  start(): readonly SentEvent[] {
    if (this.#state !== 'new') return [];
    this.#state = 'open';
    const message = {
      ...this.#envelope(),
      content: [],
      ...{ stop_reason: null, stop_sequence: null, stop_details: null },
      usage: usageOf(null),
    };
    return [sent('message_start', { message })];
  }

  write(event: AnswerEvent): readonly SentEvent[] {
    if (this.#state === 'over') return [];
    return [...this.start(), ...this.#written(event)];
  }

  keepAlive(): readonly SentEvent[] {
    return this.#state === 'open' ? [sent('ping', {})] : [];
  }

  fail(problem: DialectProblem): readonly SentEvent[] {
    if (this.#state === 'over') return [];
    const begun = this.start();
    this.#state = 'over';
    const open = this.#openBlock;
    this.#openBlock = null;
    return [
      ...begun,
      ...(open === null ? [] : [sent('content_block_stop', { index: open.index })]),
      sent('error', { error: streamedErrorOf(problem), request_id: this.#head.requestId }),
    ];
  }

  whole(answer: Answer): Fields {
    return {
      ...this.#envelope(),
      content: answer.items.map((item) => this.#block(item)),
      ...reasonOf(answer),
      usage: usageOf(answer.usage),
    };
  }

  #envelope(): Fields {
    const { requestId, model } = this.#head;
    return { id: `msg_${requestId}`, type: 'message', role: 'assistant', model };
  }

  #written(event: AnswerEvent): readonly SentEvent[] {
    switch (event.type) {
      case 'item-start': {
        const { index, item } = event;
        this.#openBlock = { index, kind: item.kind };
        return [sent('content_block_start', { index, content_block: emptyBlock(item) })];
      }
      case 'item-delta':
        return this.#delta(event.index, event.delta);
      case 'item-end':
        this.#openBlock = null;
        return [
          ...this.#signature(event.index, event.item),
          sent('content_block_stop', { index: event.index }),
        ];
      case 'end':
        this.#state = 'over';
        return [
          sent('message_delta', {
            delta: reasonOf(event.answer),
            usage: usageOf(event.answer.usage),
          }),
          sent('message_stop', {}),
        ];
    }
  }

  #delta(index: number, text: string): readonly SentEvent[] {
    const kind = this.#openBlock?.kind;
    if (kind === 'reasoning' && !this.#extra.showsThinking) return [];
    const delta =
      kind === 'reasoning'
        ? { type: 'thinking_delta', thinking: text }
        : kind === 'tool-call'
          ? { type: 'input_json_delta', partial_json: text }
          : { type: 'text_delta', text };
    return [sent('content_block_delta', { index, delta })];
  }

  #signature(index: number, item: AnswerItem): readonly SentEvent[] {
    if (item.kind !== 'reasoning') return [];
    const signature = signatureOf(item.text, this.#extra.showsThinking);
    const delta = { type: 'signature_delta', signature };
    return [sent('content_block_delta', { index, delta })];
  }

  #block(item: AnswerItem): Fields {
    switch (item.kind) {
      case 'text':
        return { type: 'text', text: item.text };
      case 'reasoning': {
        const { showsThinking } = this.#extra;
        return {
          type: 'thinking',
          thinking: showsThinking ? item.text : '',
          signature: signatureOf(item.text, showsThinking),
        };
      }
      case 'tool-call':
        return { ...emptyBlock(item), input: inputOf(item.arguments) };
    }
  }
}

function sent(event: string, fields: Fields): SentEvent {
  return { event, data: { type: event, ...fields } };
}

function emptyBlock(item: AnswerItem): Fields {
  switch (item.kind) {
    case 'text':
      return { type: 'text', text: '' };
    case 'reasoning':
      return { type: 'thinking', thinking: '', signature: '' };
    case 'tool-call':
      // Clients take the input from the deltas alone.
      return { type: 'tool_use', id: item.callId, name: item.tool.name, input: {} };
  }
}

/** An input is an object: what was sampled and is none, or was cut off, shows as an empty one. */
function inputOf(text: string): Fields {
  try {
    return recordOf(JSON.parse(text)) ?? {};
  } catch {
    return {};
  }
}

function reasonOf({ finish, stopSequence, items }: Answer): Fields {
  return {
    stop_reason: stopReason(finish, items),
    stop_sequence: stopSequence,
    stop_details:
      finish === 'filter' ? { type: 'refusal', category: null, explanation: null } : null,
  };
}

/** Some engines say `stop` where tools were called; what stands in the answer decides. A limit is never hidden by a call. */
function stopReason(finish: Answer['finish'], items: Answer['items']): string {
  switch (finish) {
    case 'stop':
    case 'tool-calls':
      return items.some(({ kind }) => kind === 'tool-call') ? 'tool_use' : 'end_turn';
    case 'stop-sequence':
      return 'stop_sequence';
    case 'length':
      return 'max_tokens';
    case 'context':
      return 'model_context_window_exceeded';
    case 'filter':
      return 'refusal';
  }
}

/** Cached tokens are counted apart from the input. Zeros where the engine does not say: clients read every number. */
function usageOf(usage: AnswerUsage | null): Fields {
  const cached = usage?.cachedTokens ?? 0;
  return {
    input_tokens: Math.max(0, (usage?.inputTokens ?? 0) - cached),
    cache_creation_input_tokens: 0,
    cache_read_input_tokens: cached,
    output_tokens: usage?.outputTokens ?? 0,
    output_tokens_details: { thinking_tokens: usage?.reasoningTokens ?? 0 },
  };
}
