import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { parseChat } from '../../../../src/engines/server/vocabulary/parse-chat.ts';
import { renderChat, renderReply } from '../../../../src/engines/server/vocabulary/render-chat.ts';
import { loadVocabulary } from '../../../../src/engines/server/vocabulary/load-vocabulary.ts';
import { hostileTexts, messages, tools } from './chats.ts';

const vocabulary = await loadVocabulary(null);
const idOf = (name: string): number => vocabulary.encode(name, { parsesSpecial: true })[0]!;
const turnStart = idOf('<|im_start|>');
const plain = (text: string): number[] => vocabulary.encode(text, { parsesSpecial: false });

suite('chats as ids', () => {
  for (const [index, message] of messages.entries())
    test(`message ${index} comes back as it was: ${JSON.stringify(message).slice(0, 90)}`, () => {
      const ids = renderChat(vocabulary, { messages: [message], tools: [] });
      assert.deepEqual(parseChat(vocabulary, ids), { messages: [message], tools: [], begun: [] });
    });

  test('a whole chat comes back with its tools', () => {
    const ids = renderChat(vocabulary, { messages, tools });
    assert.deepEqual(parseChat(vocabulary, ids), { messages, tools, begun: [] });
  });

  test('no text opens a turn', () => {
    const chat = hostileTexts.map((content) => ({ role: 'user' as const, content }));
    const ids = renderChat(vocabulary, { messages: chat, tools: [] });
    assert.equal(ids.filter((id) => id === turnStart).length, chat.length + 1);
  });

  test('a chat reads as ChatML', () => {
    const ids = renderChat(vocabulary, {
      messages: [
        { role: 'user', content: 'List.' },
        {
          role: 'assistant',
          content: 'Yes.',
          reasoning_content: 'Easy.',
          tool_calls: [
            { id: 'call_1', type: 'function', function: { name: 'run', arguments: '{"a": 1}' } },
          ],
        },
        { role: 'tool', content: 'a.txt', tool_call_id: 'call_1' },
      ],
      tools: tools.slice(0, 1),
    });
    assert.equal(
      vocabulary.decode(ids, { skipsSpecial: false }),
      [
        '<|im_start|>system',
        'Functions that may be called, as JSON, one per line:',
        '{"type":"function","function":{"name":"run"}}<|im_end|>"tools"',
        '<|im_start|>user',
        'List.<|im_end|>',
        '<|im_start|>assistant',
        '<think>Easy.</think>Yes.<tool_call>',
        '{"name": "run", "arguments": {"a": 1}}',
        '</tool_call><|im_end|>{"tool_calls":[{"id":"call_1"}]}',
        '<|im_start|>tool',
        'a.txt<|im_end|>{"tool_call_id":"call_1"}',
        '<|im_start|>assistant',
        '',
      ].join('\n'),
    );
  });

  test('the next prompt begins with this prompt and the reply', () => {
    const asked = { messages: [{ role: 'user' as const, content: 'List.' }], tools };
    const reply = {
      content: '\n\nSo be it.\n',
      reasoning: 'Hm.',
      toolCalls: [{ name: 'run', arguments: '{"command":"ls"}' }],
    };
    const begin = [...renderChat(vocabulary, asked), ...renderReply(vocabulary, reply)];
    const next = renderChat(vocabulary, {
      tools,
      messages: [
        ...asked.messages,
        {
          role: 'assistant',
          content: reply.content,
          reasoning_content: reply.reasoning,
          tool_calls: [
            {
              id: 'call_9',
              type: 'function',
              function: { name: 'run', arguments: '{"command":"ls"}' },
            },
          ],
        },
        { role: 'tool', tool_call_id: 'call_9', content: 'a.txt' },
      ],
    });
    assert.deepEqual(next.slice(0, begin.length), begin);
  });

  test('calls of a turn that was only sampled are numbered', () => {
    const ids = [
      ...renderChat(vocabulary, { messages: [], tools: [] }),
      ...renderReply(vocabulary, {
        content: '',
        toolCalls: [
          { name: 'a', arguments: '{}' },
          { name: 'b', arguments: '1' },
        ],
      }),
      ...renderChat(vocabulary, { messages: [], tools: [] }),
    ];
    assert.deepEqual(parseChat(vocabulary, ids).messages, [
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'call_0', type: 'function', function: { name: 'a', arguments: '{}' } },
          { id: 'call_1', type: 'function', function: { name: 'b', arguments: '1' } },
        ],
      },
    ]);
  });

  test('a reply that was begun is told apart', () => {
    const begun = plain('Half a sen');
    const ids = [...renderChat(vocabulary, { messages: [], tools: [] }), ...begun];
    assert.deepEqual(parseChat(vocabulary, ids), { messages: [], tools: [], begun });
  });

  const foreign: readonly (readonly [string, string, unknown])[] = [
    [
      'text without turns is what a user says',
      'Once upon a time',
      [{ role: 'user', content: 'Once upon a time' }],
    ],
    [
      'a role that we do not know is a user',
      '<|im_start|>human\nHi<|im_end|>\n',
      [{ role: 'user', content: 'Hi' }],
    ],
    [
      'Qwen spells calls with other spaces',
      '<|im_start|>assistant\n<think>\nA\n</think>\n\nB\n<tool_call>\n{"arguments": {"c": [1]}, "name": "run"}\n</tool_call>\n<tool_call>\n{"name":"x"}\n</tool_call><|im_end|>\n',
      [
        {
          role: 'assistant',
          content: '\n\nB\n',
          reasoning_content: '\nA\n',
          tool_calls: [
            { id: 'call_0', type: 'function', function: { name: 'run', arguments: '{"c":[1]}' } },
            { id: 'call_1', type: 'function', function: { name: 'x', arguments: '{}' } },
          ],
        },
      ],
    ],
    [
      'a call that is none stays text',
      '<|im_start|>assistant\n<tool_call>ls</tool_call><|im_end|>\n',
      [{ role: 'assistant', content: '<tool_call>ls</tool_call>' }],
    ],
    [
      'markers in another order stay text',
      '<|im_start|>assistant\nA<think>B</think></think><|im_end|>\n',
      [{ role: 'assistant', content: 'A<think>B</think></think>' }],
    ],
    [
      'a turn may lack its end',
      '<|im_start|>user\nA<|im_start|>user\nB',
      [
        { role: 'user', content: 'A' },
        { role: 'user', content: 'B' },
      ],
    ],
  ];
  for (const [title, text, expected] of foreign)
    test(`other templates: ${title}`, () => {
      const ids = vocabulary.encode(text, { parsesSpecial: true });
      assert.deepEqual(parseChat(vocabulary, ids).messages, expected);
    });

  test('random ids are some chat', () => {
    let state = 7;
    const next = (limit: number): number => {
      state = (state * 1103515245 + 12345) % 2147483648;
      return Math.floor((state / 2147483648) * limit);
    };
    for (let round = 0; round < 200; round++) {
      // Control ids are the last ones: half of the draws are theirs.
      const ids = Array.from({ length: 60 }, () =>
        next(2) === 0 ? vocabulary.size - 1 - next(7) : next(vocabulary.size),
      );
      const roles = parseChat(vocabulary, ids).messages.map((message) => message.role);
      assert.ok(roles.length <= ids.length);
    }
  });
});
