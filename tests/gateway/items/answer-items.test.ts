import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isRolloutError } from '../../../src/core/errors.ts';
import type { ModelPart, ModelResult } from '../../../src/engines/model-call.ts';
import { AnswerItems } from '../../../src/gateway/items/answer-items.ts';
import type { AnswerEvent } from '../../../src/gateway/items/answer.ts';
import { ToolNames } from '../../../src/gateway/items/tool-names.ts';

const result: ModelResult = {
  requestId: 'r',
  text: '',
  reasoning: null,
  toolCalls: [],
  finishReason: 'stop',
  stopString: null,
  promptIds: null,
  outputIds: null,
  logprobs: null,
  weightVersion: null,
  usage: null,
  model: null,
  extra: {},
};

/** What each part brings out, a word per event. */
function pushed(parts: readonly ModelPart[]): readonly (readonly string[])[] {
  const items = new AnswerItems(new ToolNames([]));
  return parts.map((part) => items.push(part).map(shown));
}

function shown(event: AnswerEvent): string {
  switch (event.type) {
    case 'item-start':
      return `start ${event.item.kind}`;
    case 'item-delta':
      return event.delta;
    case 'item-end':
    case 'end':
      return event.type;
  }
}

const text = (said: string): ModelPart => ({ type: 'text-delta', text: said });
const start = (index: number): ModelPart => ({
  type: 'tool-call-start',
  index,
  id: `c${index}`,
  name: 'run',
});
const more = (index: number, given: string): ModelPart => ({
  type: 'tool-call-delta',
  index,
  arguments: given,
});
const end: ModelPart = { type: 'end', result };

describe('the items of an answer', () => {
  it('go out as they grow', () => {
    assert.deepEqual(
      pushed([
        { type: 'reasoning-delta', text: 'Hm' },
        { type: 'tokens-delta', ids: [1], logprobs: null },
        text('He'),
        text('llo'),
        start(0),
        more(0, '{'),
        more(0, '}'),
        end,
      ]),
      [
        ['start reasoning', 'Hm'],
        [],
        ['item-end', 'start text', 'He'],
        ['llo'],
        ['item-end', 'start tool-call'],
        ['{'],
        ['}'],
        ['item-end', 'end'],
      ],
    );
  });

  it('wait for the one before them, which grows on', () => {
    assert.deepEqual(
      pushed([
        start(0),
        start(1),
        more(1, 'b'),
        more(0, 'a'),
        { type: 'tool-call-end', index: 0 },
        more(1, 'c'),
        end,
      ]),
      [
        ['start tool-call'],
        [],
        [],
        ['a'],
        ['item-end', 'start tool-call', 'b'],
        ['c'],
        ['item-end', 'end'],
      ],
    );
  });

  it('hold back half a character until its other half or the end', () => {
    assert.deepEqual(pushed([text('a\ud83d'), text('\ude42\ud83d'), end]), [
      ['start text', 'a'],
      ['🙂'],
      ['\ud83d', 'item-end', 'end'],
    ]);
  });

  const refused: readonly { readonly title: string; readonly parts: readonly ModelPart[] }[] = [
    { title: 'a piece of a call that never began', parts: [more(0, '{}')] },
    {
      title: 'a piece of a call that has ended',
      parts: [start(0), { type: 'tool-call-end', index: 0 }, more(0, '{}')],
    },
    {
      title: 'a call without a name',
      parts: [{ type: 'tool-call-start', index: 0, id: 'c', name: '' }],
    },
  ];
  for (const { title, parts } of refused)
    it(`refuse ${title}`, () => {
      assert.throws(
        () => pushed(parts),
        (error) => isRolloutError(error, 'ENGINE_RESPONSE_INVALID'),
      );
    });
});
