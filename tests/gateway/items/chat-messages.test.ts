import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ToolNames } from '../../../src/gateway/items/tool-names.ts';
import { chatMessages, type MessageRules } from '../../../src/gateway/items/chat-messages.ts';
import type { ConversationItem } from '../../../src/gateway/items/conversation.ts';
import { calls, image, returns, says, text, thinks } from './conversations.ts';

const rules: MessageRules = { systemTurns: 'positional-user', reasoningField: 'reasoning_content' };
const open = '[result of c9, which is no open call]';
const interrupted = '[no result: the call was interrupted]';

function called(...ids: readonly string[]): object {
  const function_ = { name: 'run', arguments: '{}' };
  return { tool_calls: ids.map((id) => ({ id, type: 'function', function: function_ })) };
}
const assistant = (content: string | null, more: object = {}): object => ({
  role: 'assistant',
  content,
  ...more,
});
const user = (content: unknown): object => ({ role: 'user', content });
const system = (content: string): object => ({ role: 'system', content });
const tool = (id: string, content: string): object => ({ role: 'tool', tool_call_id: id, content });

const rows: readonly {
  readonly title: string;
  readonly items: readonly ConversationItem[];
  readonly messages: readonly object[];
  readonly rules?: Partial<MessageRules>;
}[] = [
  {
    title: 'calls in a row are one assistant message, with thoughts and text',
    items: [
      thinks('Hm.'),
      says('assistant', 'I look.'),
      calls('c1'),
      calls('c2'),
      returns('c1', 'a'),
      returns('c2', 'b'),
    ],
    messages: [
      assistant('I look.', { reasoning_content: 'Hm.', ...called('c1', 'c2') }),
      tool('c1', 'a'),
      tool('c2', 'b'),
    ],
  },
  {
    title: 'an assistant text between a call and its result joins the call',
    items: [calls('c1'), says('assistant', 'Done?'), returns('c1', 'a')],
    messages: [assistant('Done?', called('c1')), tool('c1', 'a')],
  },
  {
    title: 'a text that a call cut in two is one text again',
    items: [says('assistant', 'Hel'), calls('c1'), says('assistant', 'lo'), returns('c1', '')],
    messages: [assistant('Hello', called('c1')), tool('c1', '')],
  },
  {
    title: 'tool messages come before the text of their turn, which is one user message',
    items: [
      calls('c1'),
      calls('c2'),
      says('user', 'Also:'),
      returns('c2', 'b'),
      says('user', 'go on'),
      returns('c1', 'a'),
    ],
    messages: [
      assistant(null, called('c1', 'c2')),
      tool('c1', 'a'),
      tool('c2', 'b'),
      user('Also:\n\ngo on'),
    ],
  },
  {
    title: 'a result that is an error says so in its text',
    items: [calls('c1'), { ...returns('c1', 'no such file'), isError: true }],
    messages: [assistant(null, called('c1')), tool('c1', '[error] no such file')],
  },
  {
    title: 'a result of several texts is one text, and an empty one is empty',
    items: [calls('c1'), calls('c2'), returns('c1', 'a', '', 'b'), returns('c2')],
    messages: [assistant(null, called('c1', 'c2')), tool('c1', 'a\n\nb'), tool('c2', '')],
  },
  {
    title: 'a call without a result gets one that says so, also at the end',
    items: [calls('c1'), calls('c2'), returns('c2', 'b'), says('user', 'Stop'), calls('c3')],
    messages: [
      assistant(null, called('c1', 'c2')),
      tool('c1', interrupted),
      tool('c2', 'b'),
      user('Stop'),
      assistant(null, called('c3')),
      tool('c3', interrupted),
    ],
  },
  {
    title: 'a result without its call is text of the user',
    items: [says('user', 'Hi'), returns('c9', 'lost', image('data:image/png;base64,AA'))],
    messages: [
      user([
        { type: 'text', text: `${open}\nlost` },
        { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } },
        { type: 'text', text: 'Hi' },
      ]),
    ],
  },
  {
    title: 'a second result of one call and one that comes too late are text of the user',
    items: [
      calls('c9'),
      returns('c9', 'first'),
      returns('c9', 'second'),
      says('assistant', 'Well'),
      returns('c9', 'third'),
    ],
    messages: [
      assistant(null, called('c9')),
      tool('c9', 'first'),
      user(`${open}\nsecond`),
      assistant('Well'),
      user(`${open}\nthird`),
    ],
  },
  {
    title: 'images of a result are shown behind the tool messages',
    items: [
      calls('c1'),
      returns('c1', 'a picture', image('https://host.test/a.png')),
      says('user', 'See?'),
    ],
    messages: [
      assistant(null, called('c1')),
      tool('c1', 'a picture\n\n[1 image(s), shown in the next message]'),
      user([
        { type: 'text', text: '[image(s) of the result of c1]' },
        { type: 'image_url', image_url: { url: 'https://host.test/a.png' } },
        { type: 'text', text: 'See?' },
      ]),
    ],
  },
  {
    title: 'images stay where they stand among the user’s texts',
    items: [says('user', 'A', image('https://host.test/a.png'), 'B')],
    messages: [
      user([
        { type: 'text', text: 'A' },
        { type: 'image_url', image_url: { url: 'https://host.test/a.png' } },
        { type: 'text', text: 'B' },
      ]),
    ],
  },
  {
    title: 'leading system turns are one, later ones text of the user in tags',
    items: [
      says('system', 'Be brief.'),
      says('developer', 'Be kind.', 'Be quick.'),
      says('user', 'Hi'),
      says('system', 'Be loud.'),
      says('assistant', 'HI'),
      says('developer', 'Softer.'),
    ],
    messages: [
      system('Be brief.\n\nBe kind.\n\nBe quick.'),
      user('Hi\n\n<system>\nBe loud.\n</system>'),
      assistant('HI'),
      user('<system>\nSofter.\n</system>'),
    ],
  },
  {
    title: 'later system turns stay system messages where the rule says so',
    rules: { systemTurns: 'positional-system' },
    items: [
      says('system', 'Be brief.'),
      calls('c1'),
      returns('c1', 'a'),
      says('user', 'Hi'),
      says('system', 'Be loud.'),
      says('user', 'Ho'),
    ],
    messages: [
      system('Be brief.'),
      assistant(null, called('c1')),
      tool('c1', 'a'),
      user('Hi'),
      system('Be loud.'),
      user('Ho'),
    ],
  },
  {
    title: 'later system turns move into the first message where the rule says so',
    rules: { systemTurns: 'hoist' },
    items: [
      says('user', 'Hi'),
      says('assistant', 'Ho'),
      says('system', 'Be loud.'),
      says('user', 'Hi!'),
    ],
    messages: [system('Be loud.'), user('Hi'), assistant('Ho'), user('Hi!')],
  },
  {
    title: 'thoughts stand in the field of the upstream',
    rules: { reasoningField: 'reasoning' },
    items: [says('user', 'Hi'), thinks('Hm'), thinks('.'), says('assistant', 'Ho')],
    messages: [user('Hi'), assistant('Ho', { reasoning: 'Hm.' })],
  },
  {
    title: 'thoughts are left out where the upstream has no field',
    rules: { reasoningField: null },
    items: [
      says('user', 'Hi'),
      thinks('Hm'),
      says('user', 'Well?'),
      thinks('Hm'),
      says('assistant', 'Ho'),
    ],
    messages: [user('Hi'), user('Well?'), assistant('Ho')],
  },
  {
    title: 'thoughts alone are an answer without text',
    items: [says('user', 'Hi'), thinks('Hm'), says('user', 'Well?')],
    messages: [user('Hi'), assistant('', { reasoning_content: 'Hm' }), user('Well?')],
  },
  {
    title: 'empty text is left out, and white space stays only beside something else',
    items: [
      says('system', ''),
      says('user', '', ' \n'),
      says('assistant', ''),
      says('user', 'Hi', '', ' '),
    ],
    messages: [user('Hi\n\n ')],
  },
  {
    title:
      'of two results of one call the first one counts, and of two calls of one name each has its own',
    items: [
      calls('c1'),
      calls('c1'),
      calls('c2'),
      returns('c2', 'a'),
      returns('c1', 'b'),
      returns('c2', 'late'),
      returns('c1', 'c'),
    ],
    messages: [
      assistant(null, called('c1', 'c1', 'c2')),
      tool('c1', 'b'),
      tool('c1', 'c'),
      tool('c2', 'a'),
      user('[result of c2, which is no open call]\nlate'),
    ],
  },
];

describe('a conversation as chat messages', () => {
  for (const { title, items, messages, rules: given } of rows)
    it(`follows the rule that ${title}`, () => {
      assert.deepEqual(chatMessages(items, new ToolNames([]), { ...rules, ...given }), messages);
    });

  it('finds the results of many calls without looking at each for every call', () => {
    const count = 1_000;
    let looks = 0;
    const results = Array.from({ length: count }, (_, index) => {
      const result = returns(`c${count - 1 - index}`, 'a');
      return Object.defineProperty({ ...result }, 'callId', {
        get: () => ((looks += 1), `c${count - 1 - index}`),
      });
    });
    const said = Array.from({ length: count }, (_, index) => calls(`c${index}`));
    const messages = chatMessages([...said, ...results], new ToolNames([]), rules);
    assert.equal(messages.length, count + 1);
    assert.ok(looks < 10 * count, `${looks} looks`);
  });

  it('takes a message of very many parts', () => {
    const parts = Array.from({ length: 300_000 }, () => text('a'));
    const item: ConversationItem = { kind: 'message', role: 'user', parts };
    const [message, ...others] = chatMessages([item], new ToolNames([]), rules);
    assert.equal(message?.role, 'user');
    assert.equal(others.length, 0);
  });
});
