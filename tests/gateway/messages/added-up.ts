/**
 * What a client makes of the events of a message, written from the protocol's own rules and sharing nothing with the writer. It is as strict as the strictest
 * client: an event out of its place throws.
 */
import type { SentEvent } from '../../../src/gateway/dialects/dialect.ts';

type Json = Record<string, unknown>;

const deltaKinds: Readonly<Record<string, readonly string[]>> = {
  text: ['text_delta'],
  thinking: ['thinking_delta', 'signature_delta'],
  tool_use: ['input_json_delta'],
};

export class AddedUp {
  #message: Json | null = null;
  #blocks: Json[] = [];
  #open: { readonly block: Json; readonly index: number; input: string; isSigned: boolean } | null =
    null;
  #isToldWhy = false;
  #ending: 'message_stop' | 'error' | null = null;

  /** The whole message; null = the stream ended with an error, or has not ended. */
  get message(): Json | null {
    return this.#ending === 'message_stop' && this.#message !== null
      ? { ...this.#message, content: this.#blocks }
      : null;
  }

  get ending(): 'message_stop' | 'error' | null {
    return this.#ending;
  }

  add({ event, data }: SentEvent): void {
    must(event !== null && event === data['type'], 'the name of an event is its type');
    must(this.#ending === null, `${event} comes after the end`);
    must((event === 'message_start') === (this.#message === null), `${event} is out of its place`);
    switch (event) {
      case 'message_start':
        this.#message = structuredClone(data['message']) as Json;
        must(Array.isArray(this.#message['content']), 'a message begins without content');
        break;
      case 'content_block_start':
        this.#start(data);
        break;
      case 'content_block_delta':
        this.#delta(data);
        break;
      case 'content_block_stop':
        this.#stop(data);
        break;
      case 'message_delta':
        must(this.#open === null && !this.#isToldWhy, 'the reason comes once, after all blocks');
        this.#isToldWhy = true;
        Object.assign(this.#message!, data['delta']);
        Object.assign(this.#message!['usage'] as Json, data['usage']);
        break;
      case 'message_stop':
        must(this.#isToldWhy, 'the end comes after the reason');
        this.#ending = 'message_stop';
        break;
      case 'error':
        must(this.#open === null, 'a failure comes after what was open');
        this.#ending = 'error';
        break;
      case 'ping':
        must(Object.keys(data).length === 1, 'a ping says nothing');
        break;
      default:
        throw new Error(`${event} is no event`);
    }
  }

  #start({ index, content_block }: Json): void {
    must(this.#open === null && !this.#isToldWhy, 'a block begins inside another');
    must(index === this.#blocks.length, 'blocks are numbered without gaps');
    const block = structuredClone(content_block) as Json;
    for (const field of ['text', 'thinking', 'signature'])
      must((block[field] ?? '') === '', `a block begins with ${field}`);
    must(JSON.stringify(block['input'] ?? {}) === '{}', 'a call begins with its input');
    this.#blocks.push(block);
    this.#open = { block, index: this.#blocks.length - 1, input: '', isSigned: false };
  }

  #delta({ index, delta: given }: Json): void {
    const [open, delta] = [this.#open, given as Json];
    must(open !== null && open.index === index, 'a delta belongs to no open block');
    const { block } = open;
    const kind = String(delta['type']);
    must(deltaKinds[String(block['type'])]!.includes(kind), `${kind} in another block`);
    must(!open.isSigned, 'a delta comes after the signature');
    const [, text] = Object.entries(delta).find(([name]) => name !== 'type')!;
    must(typeof text === 'string' && text !== '', 'a delta is empty');
    switch (kind) {
      case 'text_delta':
        block['text'] = String(block['text']) + text;
        break;
      case 'thinking_delta':
        block['thinking'] = String(block['thinking']) + text;
        break;
      case 'signature_delta':
        open.isSigned = true;
        block['signature'] = text;
        break;
      default:
        open.input += text;
    }
  }

  #stop({ index }: Json): void {
    const open = this.#open;
    must(open !== null && open.index === index, 'a block ends that is not open');
    if (open.block['type'] === 'tool_use') open.block['input'] = inputOf(open.input);
    this.#open = null;
  }
}

export function addedUp(events: readonly SentEvent[]): AddedUp {
  const sum = new AddedUp();
  for (const event of events) sum.add(event);
  return sum;
}

function inputOf(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
  } catch {
    return {};
  }
}

function must(isRight: boolean, rule: string): asserts isRight {
  if (!isRight) throw new Error(rule);
}
