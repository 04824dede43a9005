/** What of a session differs from its conversation, told family by family: on a vocabulary of our own with the control tokens of each. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { ChatMessage } from '../../../src/engines/chat-message.ts';
import type { FamilyCodec } from '../../../src/sessions/families/family-codec.ts';
import { openCodec } from '../../../src/sessions/families/registry.ts';
import { compareIds } from '../../../src/sessions/miles/mismatch.ts';

interface Row {
  readonly family: string;
  readonly tokens: readonly string[];
  readonly template?: string;
  readonly encoder?: string;
}

const role = '{{ message.role }}';
const rows: readonly Row[] = [
  {
    family: 'qwen3',
    tokens: [],
    template: `{% for message in messages %}<|im_start|>${role}
{% if message.role == 'assistant' and loop.index0 > ns.last_query_index and message.reasoning_content %}<think>{{ message.reasoning_content }}</think>{% endif %}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`,
  },
  {
    family: 'glm47',
    tokens: ['<|user|>', '<|assistant|>', '<|observation|>'],
    // Thoughts are opened by default, and not in these conversations.
    template: `{% for message in messages %}<|${role}|>{% if message.role == 'assistant' %}</think>{% endif %}{{ message.content }}{% endfor %}{% if add_generation_prompt %}<|assistant|><think>{% endif %}`,
  },
  {
    family: 'kimi26',
    tokens: ['<|im_user|>', '<|im_assistant|>', '<|im_middle|>'],
    template: `{% for message in messages %}<|im_${role}|>${role}<|im_middle|>{{ message.content }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_assistant|>assistant<|im_middle|>{% endif %}`,
  },
  {
    family: 'minimax_m27',
    tokens: [']~b]', '[e~['],
    template: `{% for message in messages %}]~b]{{ 'ai' if message.role == 'assistant' else message.role }}
{% if message.role == 'assistant' and loop.index0 > ns.last_user_index %}{{ message.reasoning_content }}{% endif %}{{ message.content }}[e~[
{% endfor %}{% if add_generation_prompt %}]~b]ai
<think>
{% endif %}`,
  },
  {
    family: 'deepseekv32',
    tokens: ['<｜begin▁of▁sentence｜>', '<｜end▁of▁sentence｜>', '<｜User｜>', '<｜Assistant｜>'],
    encoder: "TOOLS_SYSTEM_TEMPLATE = ''\n",
  },
];

const messages: readonly ChatMessage[] = [
  { role: 'user', content: 'good morning' },
  { role: 'assistant', content: 'hello there' },
  { role: 'user', content: 'and now' },
  { role: 'assistant', content: 'goodbye' },
];

async function checkpointOf({ tokens, template, encoder }: Row): Promise<string> {
  const own = path.join(import.meta.dirname, '../../../assets/vocabulary/tokenizer.json');
  const document = JSON.parse(await readFile(own, 'utf8')) as {
    added_tokens: { id: number; content: string }[];
  };
  const [first] = document.added_tokens;
  let id = Math.max(...document.added_tokens.map((token) => token.id));
  for (const content of tokens) document.added_tokens.push({ ...first!, id: (id += 1), content });
  const dir = await mkdtemp(path.join(os.tmpdir(), 'slipway-family-'));
  await writeFile(path.join(dir, 'tokenizer.json'), JSON.stringify(document));
  if (template !== undefined) await writeFile(path.join(dir, 'chat_template.jinja'), template);
  if (encoder !== undefined) await writeFile(path.join(dir, 'encoding_dsv32.py'), encoder);
  return dir;
}

async function openRow(row: Row): Promise<FamilyCodec> {
  const tokenizer = await checkpointOf(row);
  await using cleaning = new AsyncDisposableStack();
  cleaning.defer(() => rm(tokenizer, { recursive: true }));
  const { family } = row;
  return await openCodec({ family, tokenizer, templateFile: null, now: () => new Date(0) });
}

describe('a session that differs from its conversation', () => {
  for (const row of rows)
    it(`has an assistant's own spelling told from everything else: ${row.family}`, async () => {
      const codec = await openRow(row);
      const conversation = { messages, tools: [], templateVariables: {} };
      const { text, ids } = codec.render(conversation, { opensTurn: false });
      const typesOf = (from: string, to: string): readonly string[] => {
        assert.ok(text.includes(from), text);
        const held = codec.encode(text.replace(from, to));
        return compareIds(ids, held, codec).map(({ type }) => type);
      };
      assert.deepEqual(typesOf('hello', 'hello'), []);
      assert.deepEqual(typesOf('hello', 'hallo'), ['assistant_text']);
      assert.deepEqual(typesOf('morning', 'evening'), ['non_assistant_text']);
    });

  it('lacks the end of a turn that was cut off, and nothing where only the template writes on', async () => {
    const codec = await openRow(rows[0]!);
    const conversation = { messages, tools: [], templateVariables: {} };
    const { ids } = codec.render(conversation, { opensTurn: false });
    const typesWithout = (count: number): readonly string[] =>
      compareIds(ids, ids.subarray(0, ids.length - count), codec).map(({ type }) => type);
    assert.deepEqual(typesWithout(1), []);
    assert.deepEqual(typesWithout(2), ['special_token_count']);
  });
});
