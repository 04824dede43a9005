/** Feeds what an upstream sends through the reader of chat completions and the items, and checks what every list of events has to keep. */
import assert from 'node:assert/strict';
import { eventDocuments } from '../../../src/engines/shared/event-stream.ts';
import { ChatReader } from '../../../src/engines/shared/chat-reader.ts';
import type { GenerateRequest } from '../../../src/engines/engine.ts';
import { AnswerItems } from '../../../src/gateway/items/answer-items.ts';
import type { Answer, AnswerEvent } from '../../../src/gateway/items/answer.ts';
import type { ToolSpec } from '../../../src/gateway/items/conversation.ts';
import { ToolNames } from '../../../src/gateway/items/tool-names.ts';

export interface AnswerRead {
  readonly events: readonly AnswerEvent[];
  readonly answer: Answer;
  readonly notes: readonly string[];
}

export interface Asked {
  readonly tools?: readonly ToolSpec[];
  readonly maxTokens?: number;
  readonly stop?: readonly string[];
}

const at = { url: 'http://engine.test/v1', requestId: 'req', secrets: [] };

function request({ maxTokens, stop }: Asked): GenerateRequest {
  return {
    requestId: 'req',
    model: null,
    input: { kind: 'messages', messages: [] },
    sampling: {
      ...(maxTokens !== undefined && { maxTokens }),
      ...(stop !== undefined && { stop }),
    },
    isStreaming: true,
    wantsTokens: false,
  };
}

class Reading {
  readonly #items: AnswerItems;
  readonly reader: ChatReader;
  readonly events: AnswerEvent[] = [];

  constructor(asked: Asked) {
    const { maxTokens = null, tools = [] } = asked;
    this.#items = new AnswerItems(new ToolNames(tools), { maxTokens });
    this.reader = new ChatReader(request(asked), at);
  }

  push(parts: ReturnType<ChatReader['event']>): void {
    for (const part of parts) this.events.push(...this.#items.push(part));
  }

  end(): AnswerRead {
    const last = this.events.at(-1);
    assert.ok(last?.type === 'end', 'the last event is the end');
    checkEvents(this.events, last.answer);
    return { events: this.events, answer: last.answer, notes: this.#items.notes };
  }
}

/** Throws as the reader and the items do; a stream that ends before its answer is an error of its own. */
export function readChunks(chunks: readonly unknown[], asked: Asked = {}): AnswerRead {
  const reading = new Reading(asked);
  for (const chunk of chunks) reading.push(reading.reader.event(chunk));
  return endOf(reading);
}

export function readWhole(document: unknown, asked: Asked = {}): AnswerRead {
  const reading = new Reading(asked);
  reading.push(reading.reader.whole(document));
  return reading.end();
}

export async function readBytes(
  pieces: readonly Uint8Array[],
  asked: Asked = {},
): Promise<AnswerRead> {
  const reading = new Reading(asked);
  for await (const document of eventDocuments(asyncOf(pieces), at))
    reading.push(reading.reader.event(document));
  return endOf(reading);
}

/** Deltas of one item in a row as one. */
export function joined(events: readonly AnswerEvent[]): readonly AnswerEvent[] {
  const all: AnswerEvent[] = [];
  for (const event of events) {
    const last = all.at(-1);
    if (event.type === 'item-delta' && last?.type === 'item-delta')
      all[all.length - 1] = { ...last, delta: last.delta + event.delta };
    else all.push(event);
  }
  return all;
}

function endOf(reading: Reading): AnswerRead {
  const last = reading.reader.end();
  if (last === null) throw new Error('the stream ended before the answer');
  reading.push(last);
  return reading.end();
}

function checkEvents(events: readonly AnswerEvent[], answer: Answer): void {
  let next = 0;
  let open: string | null = null;
  for (const [at, event] of events.entries()) {
    if (event.type === 'end') {
      assert.equal(at, events.length - 1, 'one end, the last event');
      assert.equal(open, null, 'no item is open at the end');
      assert.equal(next, answer.items.length, 'every item of the answer was sent');
      continue;
    }
    assert.equal(event.index, next, 'items come one after another');
    if (event.type === 'item-start') {
      assert.equal(open, null, 'an item starts after the one before it ended');
      assert.equal(textOf(event.item), '', 'an item begins empty');
      open = '';
    } else if (event.type === 'item-delta') {
      assert.ok(open !== null, 'a delta belongs to an open item');
      assert.notEqual(event.delta, '', 'no delta is empty');
      assert.ok(event.delta.isWellFormed(), 'no delta ends in the middle of a character');
      open += event.delta;
    } else {
      assert.equal(textOf(event.item), open, 'an item is what its deltas add up to');
      assert.deepEqual(event.item, answer.items[next]);
      open = null;
      next += 1;
    }
  }
}

function textOf(item: Answer['items'][number]): string {
  return item.kind === 'tool-call' ? item.arguments : item.text;
}

async function* asyncOf(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  await Promise.resolve();
  yield* pieces;
}
