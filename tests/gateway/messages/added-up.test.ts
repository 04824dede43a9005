import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SentEvent } from '../../../src/gateway/dialects/dialect.ts';
import { loadCases } from '../golden.ts';
import { addedUp } from './added-up.ts';
import type { MessagesCase, StreamCase } from './messages-case.ts';

type Events = readonly SentEvent[];

const given = (loadCases('messages') as readonly MessagesCase[]).find(
  (each): each is StreamCase => each.direction === 'stream' && each.case === 'MS20',
)!;
/** Thinking, text and a call. */
const right: Events = given.events.map(([event, data]) => ({ event, data }));

const named = (name: string): SentEvent => right.find(({ event }) => event === name)!;
const without = (name: string): Events => right.filter((each) => each !== named(name));
const changed = (isIt: (event: SentEvent) => boolean, data: Record<string, unknown>): Events =>
  right.map((each) => (isIt(each) ? { ...each, data: { ...each.data, ...data } } : each));
const kindOf = ({ data }: SentEvent): unknown =>
  (data['delta'] as { readonly type?: unknown } | undefined)?.type;
const swapped = (isIt: (event: SentEvent) => boolean): Events => {
  const at = right.findIndex(isIt);
  return right.with(at, right[at + 1]!).with(at + 1, right[at]!);
};

const faults: Readonly<Record<string, Events>> = {
  'no message_start': without('message_start'),
  'two of message_start': [named('message_start'), ...right],
  'no content_block_start': without('content_block_start'),
  'no content_block_stop': without('content_block_stop'),
  'no message_delta': without('message_delta'),
  'two of message_delta': right.flatMap((each) =>
    each === named('message_delta') ? [each, each] : [each],
  ),
  'no name': right.map(({ data }) => ({ event: null, data })),
  'a name that is not the type': changed(() => true, { type: 'x' }),
  'a gap between blocks': changed(({ data }) => data['index'] === 2, { index: 3 }),
  'an empty delta': changed((each) => kindOf(each) === 'text_delta', {
    delta: { type: 'text_delta', text: '' },
  }),
  'thinking inside of text': changed((each) => kindOf(each) === 'thinking_delta', {
    delta: { type: 'text_delta', text: 'x' },
  }),
  'a signature before its thinking': swapped((each) => kindOf(each) === 'thinking_delta'),
  'the input in the start of a call': changed(
    ({ event, data }) => event === 'content_block_start' && data['index'] === 2,
    { content_block: { type: 'tool_use', id: 'c', name: 'Bash', input: { command: 'ls' } } },
  ),
  'something after the end': [...right, { event: 'ping', data: { type: 'ping' } }],
};

describe('the sum of the events of a message', () => {
  it('is a message where all is in its place', () => {
    assert.deepEqual(addedUp(right).message, given.message);
  });

  for (const [fault, events] of Object.entries(faults))
    it(`is none with ${fault}`, () => {
      assert.throws(() => addedUp(events));
    });

  it('is unfinished without message_stop', () => {
    assert.equal(addedUp(without('message_stop')).message, null);
  });
});
