/**
 * Answers of the Responses API. The order that its clients need: `response.created`, `response.in_progress`; per item `output_item.added`, its parts and deltas,
 * `output_item.done`; one terminal event whose response holds everything once more.
 *
 * `output_item.done` waits until the next item or the end: only then is it known whether the answer was cut off inside it (`incomplete`), and a client that runs
 * a tool as soon as its item is done must not run one of an answer that failed.
 */
import type { AnswerHead, AnswerWriter, DialectProblem, SentEvent } from '../dialect.ts';
import type { Answer, AnswerEvent, AnswerItem, AnswerUsage } from '../../items/answer.ts';
import type { ResponsesExtra } from './echo.ts';
import { closingEvents, deltaEvent, openingEvents, type ItemEvent } from './item-events.ts';
import { outputItem, type ItemStatus, type OutputItem } from './output-item.ts';
import { failureOf } from './problem.ts';

type JsonObject = Readonly<Record<string, unknown>>;

export class ResponsesWriter implements AnswerWriter {
  readonly #head: AnswerHead;
  readonly #extra: ResponsesExtra;
  readonly #output: OutputItem[] = [];
  #sequence = 0;
  /** The item that is open, or ended and not yet said to be done. */
  #current: { readonly index: number; readonly item: AnswerItem } | null = null;

  constructor(head: AnswerHead, extra: ResponsesExtra) {
    this.#head = head;
    this.#extra = extra;
  }

  start(): readonly SentEvent[] {
    return [this.#lifecycle('created', this.#opening()), ...this.keepAlive()];
  }

  /** Clients' idle timers count events, not comments. Its empty output takes nothing back of what clients have put together. */
  keepAlive(): readonly SentEvent[] {
    return [this.#lifecycle('in_progress', this.#opening())];
  }

  write(event: AnswerEvent): readonly SentEvent[] {
    switch (event.type) {
      case 'item-start': {
        const done = this.#finishItem('completed');
        this.#current = event;
        const item = this.#outputItem(event, 'in_progress');
        return [
          ...done,
          this.#event('response.output_item.added', { output_index: event.index, item }),
          ...this.#itemEvents(event, openingEvents(event.item)),
        ];
      }
      case 'item-delta':
        if (this.#current === null) throw new Error('a delta came before its item');
        return this.#itemEvents(this.#current, [deltaEvent(this.#current.item, event.delta)]);
      case 'item-end':
        this.#current = event;
        return this.#itemEvents(event, closingEvents(event.item));
      case 'end': {
        const done = this.#finishItem(lastStatus(event.answer));
        const response = this.whole(event.answer);
        return [...done, this.#lifecycle(String(response['status']), response)];
      }
    }
  }

  /** Nothing that is open is closed: no client may act on it. */
  fail(problem: DialectProblem): readonly SentEvent[] {
    const response = this.#response('failed', {
      output: this.#output,
      error: failureOf(problem),
    });
    return [this.#lifecycle('failed', response)];
  }

  whole(answer: Answer): JsonObject {
    const { items, usage } = answer;
    const reason = incompleteReason(answer);
    const output = items.map((item, index) =>
      this.#outputItem(
        { index, item },
        index === items.length - 1 ? lastStatus(answer) : 'completed',
      ),
    );
    return this.#response(reason === null ? 'completed' : 'incomplete', {
      output,
      incomplete_details: reason === null ? null : { reason },
      usage: usageOf(usage),
    });
  }

  #finishItem(status: ItemStatus): readonly SentEvent[] {
    const current = this.#current;
    if (current === null) return [];
    this.#current = null;
    const item = this.#outputItem(current, status);
    this.#output.push(item);
    return [this.#event('response.output_item.done', { output_index: current.index, item })];
  }

  #outputItem(
    { index, item }: { readonly index: number; readonly item: AnswerItem },
    status: ItemStatus,
  ): OutputItem {
    const { requestId } = this.#head;
    const hasCarrier = this.#extra.wantsReasoningCarrier;
    return outputItem(item, { requestId, index, status, hasCarrier });
  }

  #itemEvents(
    place: { readonly index: number; readonly item: AnswerItem },
    events: readonly ItemEvent[],
  ): readonly SentEvent[] {
    const { id } = this.#outputItem(place, 'in_progress');
    return events.map(({ type, fields }) =>
      this.#event(type, { item_id: id, output_index: place.index, ...fields }),
    );
  }

  #opening(): JsonObject {
    return this.#response('in_progress', {});
  }

  #response(status: string, fields: JsonObject): JsonObject {
    const { requestId, createdAt, model } = this.#head;
    return {
      id: `resp_${requestId}`,
      object: 'response',
      created_at: Math.floor(createdAt.getTime() / 1_000),
      status,
      error: null,
      incomplete_details: null,
      model,
      output: [],
      usage: null,
      ...this.#extra.echo,
      ...fields,
    };
  }

  #lifecycle(name: string, response: JsonObject): SentEvent {
    return this.#event(`response.${name}`, { response });
  }

  #event(type: string, fields: JsonObject): SentEvent {
    const data = { type, sequence_number: this.#sequence, ...fields };
    this.#sequence += 1;
    return { event: type, data };
  }
}

function incompleteReason({ finish }: Answer): string | null {
  if (finish === 'filter') return 'content_filter';
  // The dialect has no word for a full context: there was no room for more output either way.
  return finish === 'length' || finish === 'context' ? 'max_output_tokens' : null;
}

/** Of the last item: what came before it had ended. */
function lastStatus(answer: Answer): ItemStatus {
  return incompleteReason(answer) === null ? 'completed' : 'incomplete';
}

/** Clients that get no usage ask again without end, so an engine that does not say counts nothing. */
function usageOf(usage: AnswerUsage | null): JsonObject {
  const { inputTokens, outputTokens, cachedTokens, reasoningTokens } = usage ?? noUsage;
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cachedTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: inputTokens + outputTokens,
  };
}

const noUsage: AnswerUsage = {
  inputTokens: 0,
  outputTokens: 0,
  cachedTokens: 0,
  reasoningTokens: 0,
};
