/**
 * What a client makes of a stream of the Responses API, written from the client's side: items are put together from their events alone, and everything that a
 * strict client refuses throws.
 */
import assert from 'node:assert/strict';
import type { SentEvent } from '../../../src/gateway/dialects/dialect.ts';

type Json = Record<string, unknown>;

export interface AddedUp {
  /** Put together from deltas. */
  readonly items: readonly Json[];
  /** As `output_item.done` gave them. */
  readonly done: readonly Json[];
  readonly terminal: { readonly type: string; readonly response: Json };
}

const terminals = ['response.completed', 'response.incomplete', 'response.failed'];

export function addedUp(sent: readonly SentEvent[]): AddedUp {
  const items: Json[] = [];
  const done: Json[] = [];
  let terminal: AddedUp['terminal'] | null = null;
  for (const [position, { event, data }] of sent.entries()) {
    const { type } = data;
    assert.equal(event, type);
    assert.equal(data['sequence_number'], position);
    assert.equal(terminal, null, 'nothing follows the terminal event');
    if (position === 0) assert.equal(type, 'response.created');
    if (terminals.includes(String(type))) {
      terminal = { type: String(type), response: data['response'] as Json };
      continue;
    }
    if (type === 'response.created' || type === 'response.in_progress') {
      assert.deepEqual((data['response'] as Json)['output'], []);
      continue;
    }
    const index = data['output_index'] as number;
    if (type === 'response.output_item.added') {
      assert.equal(index, items.length);
      assert.equal(items.length, done.length, 'items come one after another');
      items.push(structuredClone(data['item'] as Json));
      continue;
    }
    const item = items[index];
    assert.ok(item !== undefined, `event ${position} belongs to no item`);
    assert.equal(done.length, index, 'nothing follows the end of an item');
    if (type === 'response.output_item.done') {
      const whole = data['item'] as Json;
      assert.equal(whole['id'], item['id']);
      done.push(whole);
      continue;
    }
    assert.equal(data['item_id'], item['id']);
    grow(item, data);
  }
  assert.ok(terminal !== null, 'a stream has a terminal event');
  return { items, done, terminal };
}

function grow(item: Json, data: Readonly<Json>): void {
  const [, group, step] = String(data['type']).split('.');
  const parts = (item['content'] ?? item['summary']) as Json[] | undefined;
  const at = (data['content_index'] ?? data['summary_index']) as number | undefined;
  if (step === 'delta') assert.notEqual(data['delta'], '', 'no delta is empty');
  switch (`${group}.${step}`) {
    case 'content_part.added':
    case 'reasoning_summary_part.added':
      assert.equal(at, parts!.length);
      parts!.push({ ...(data['part'] as Json) });
      break;
    case 'output_text.delta':
    case 'reasoning_summary_text.delta':
      parts![at!]!['text'] = `${String(parts![at!]!['text'])}${String(data['delta'])}`;
      break;
    case 'output_text.done':
    case 'reasoning_summary_text.done':
      assert.equal(parts![at!]!['text'], data['text']);
      break;
    case 'content_part.done':
    case 'reasoning_summary_part.done':
      assert.deepEqual(parts![at!], data['part']);
      break;
    case 'function_call_arguments.delta':
      item['arguments'] = `${String(item['arguments'])}${String(data['delta'])}`;
      break;
    case 'function_call_arguments.done':
      assert.equal(item['arguments'], data['arguments']);
      break;
    case 'custom_tool_call_input.delta':
      item['input'] = `${String(item['input'])}${String(data['delta'])}`;
      break;
    case 'custom_tool_call_input.done':
      assert.equal(item['input'], data['input']);
      break;
    default:
      assert.fail(`${String(data['type'])} is not known`);
  }
}

/** Items as they compare: the status and what only a done item carries are said at its end. */
export function comparable(item: Readonly<Json>): Json {
  const late = ['status', 'encrypted_content'];
  return Object.fromEntries(Object.entries(item).filter(([name]) => !late.includes(name)));
}
