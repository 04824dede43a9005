/** How the prompts of a rollout come about: what they go on from, what of them is new, and why some go on from nothing. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ChatMessage, ToolDefinition } from '../../src/engines/chat-message.ts';
import type { Conversation } from '../../src/sessions/codec.ts';
import { conversationError } from '../../src/sessions/families/conversation-error.ts';
import { looseToolCallMatcher } from '../../src/sessions/miles/message-matcher.ts';
import { codecRenderer } from '../../src/sessions/prompts/prompt-renderer.ts';
import { TokenSession, type SessionPrompt } from '../../src/sessions/prompts/token-session.ts';
import { bytesOf, toyCodec, toyIds, type ToyOptions } from './miles/toy-codec.ts';

const user = (content: string): ChatMessage => ({ role: 'user', content });
const assistant = (content: string): ChatMessage => ({ role: 'assistant', content });
const tool: ToolDefinition = { type: 'function', function: { name: 'run' } };

function open({ mostIds, ...options }: ToyOptions & { readonly mostIds?: number } = {}) {
  const codec = toyCodec({ appendRoles: ['tool', 'user'], ...options });
  const session = new TokenSession({
    ...{ codec, renderer: codecRenderer(codec), matches: looseToolCallMatcher },
    ...(mostIds !== undefined && { mostIds }),
  });
  const ask = (messages: readonly ChatMessage[], others: Partial<Conversation> = {}) =>
    session.prompt({ messages, tools: [], templateVariables: {}, ...others });
  /** Asks, and the engine says `text` in these ids. */
  const turn = async (
    messages: readonly ChatMessage[],
    text: string,
    ids = [...bytesOf(text), toyIds.end],
  ): Promise<readonly number[]> => {
    const prompt = await ask(messages);
    session.answered(prompt, ids, { text, reasoning: null, toolCalls: [] });
    return [...prompt.ids, ...ids];
  };
  return { codec, session, ask, turn };
}

const begins = (prompt: SessionPrompt, ids: readonly number[]): boolean =>
  ids.every((id, at) => id === prompt.ids[at]);

describe('the prompt of a turn', () => {
  test('is all ids of the turn before, and the ids of what is new', async () => {
    const { codec, ask, turn } = open();
    // Ids that no text encodes to.
    const before = await turn([user('a')], 'b', [98, 0, toyIds.end]);
    const prompt = await ask([user('a'), assistant('b'), user('c')]);
    assert.equal(prompt.source, 'append');
    assert.equal(prompt.kept, before.length);
    assert.ok(begins(prompt, before));
    assert.equal(codec.decode(prompt.ids.subarray(prompt.kept)), '\n<user>c<end>\n<assistant>');
  });

  test('has the end of a turn that was cut before it', async () => {
    const { codec, ask, turn } = open();
    await turn([user('a')], 'b', [98]);
    const { ids, kept } = await ask([user('a'), assistant('b'), user('c')]);
    assert.equal(codec.decode(ids.subarray(kept)), '<end>\n<user>c<end>\n<assistant>');
  });

  test('lets an opener go that the model sampled as its stop', async () => {
    const { codec, ask, turn } = open({ boundary: 'opener' });
    const before = await turn([user('a')], 'b', [98, toyIds.tool]);
    const prompt = await ask([user('a'), assistant('b'), user('c')]);
    assert.equal(prompt.kept, before.length - 1);
    assert.equal(codec.decode(prompt.ids), '<user>a<assistant>b<user>c<assistant>');
  });

  test('goes on from the deepest checkpoint, and of equal ones from the last', async () => {
    const { ask, turn } = open();
    await turn([user('a')], 'b', [98, 1, toyIds.end]);
    await turn([user('a')], 'b', [98, 2, toyIds.end]);
    const deep = await turn([user('a'), assistant('b'), user('c')], 'd');
    assert.ok(deep.includes(2) && !deep.includes(1));
    const prompt = await ask([user('a'), assistant('b'), user('c'), assistant('d'), user('e')]);
    assert.ok(begins(prompt, deep));
    const fork = await ask([user('a'), assistant('b'), user('another')]);
    assert.deepEqual([fork.source, fork.ids.includes(2)], ['fork', true]);
  });

  test('keeps the spelling that was sampled where the client spells arguments anew', async () => {
    const { session, ask } = open();
    const sampled = { id: 'c', name: 'run', arguments: '{"n":1.0 }' };
    const prompt = await ask([user('a')]);
    session.answered(prompt, [1, toyIds.end], { text: '', reasoning: null, toolCalls: [sampled] });
    const called = (text: string): ChatMessage => ({
      ...{ role: 'assistant', content: null },
      tool_calls: [{ id: 'c', type: 'function', function: { name: 'run', arguments: text } }],
    });
    const result: ChatMessage = { role: 'tool', content: 'ok', tool_call_id: 'c' };
    assert.equal((await ask([user('a'), called('{"n": 1}'), result])).source, 'append');
    assert.equal((await ask([user('a'), called('{"n": 2}'), result])).source, 'history-changed');
  });
});

describe('a prompt that goes on from no checkpoint', () => {
  const history = [user('a'), assistant('b')] as const;
  const rows: readonly {
    readonly title: string;
    readonly source: string;
    readonly messages: readonly ChatMessage[];
    readonly others?: Partial<Conversation>;
  }[] = [
    {
      title: 'begins another conversation',
      source: 'new-conversation',
      messages: [user('something else')],
    },
    {
      title: 'has a history that was edited',
      source: 'history-changed',
      messages: [user('a'), assistant('B'), user('c')],
    },
    {
      title: 'has its history under other tools',
      source: 'other-tools',
      messages: [...history, user('c')],
      others: { tools: [tool] },
    },
    {
      title: 'has its history under other variables of the template',
      source: 'other-tools',
      messages: [...history, user('c')],
      others: { templateVariables: { thinking: false } },
    },
    {
      title: 'has a message where the family has no place for it',
      source: 'role-refused',
      messages: [...history, { role: 'system', content: 'now' }, user('c')],
    },
    {
      title: 'has a turn that nobody sampled, where the family has no place for it',
      source: 'history-changed',
      messages: [...history, user('c'), assistant('made up'), user('d')],
    },
  ];
  for (const { title, source, messages, others } of rows)
    test(`${title}: it is rendered from its beginning, and counted`, async () => {
      const { codec, session, ask, turn } = open();
      await turn([user('a')], 'b');
      const prompt = await ask(messages, others);
      assert.deepEqual([prompt.source, prompt.kept], [source, 0]);
      const conversation = { messages, tools: [], templateVariables: {}, ...others };
      assert.deepEqual(prompt.ids, codec.render(conversation, { opensTurn: true }).ids);
      assert.deepEqual(
        [...session.counts],
        [
          ['opening', 1],
          [source, 1],
        ],
      );
    });

  test('was refused by the template where it stands behind the checkpoint', async () => {
    const { codec, ask, turn } = open();
    await turn([user('a')], 'b');
    codec.renderSuffix = () => {
      throw conversationError('no');
    };
    const prompt = await ask([...history, user('c')]);
    assert.deepEqual([prompt.source, prompt.kept], ['suffix-refused', 0]);
  });

  test('is refused where the template refuses it from its beginning, too', async () => {
    const { ask, turn } = open({ appendRoles: ['developer', 'user'] });
    await turn([user('a')], 'b');
    const refused = ask([...history, { role: 'developer', content: 'x' }]);
    await assert.rejects(refused, { code: 'CONVERSATION_INVALID' });
  });
});

test('a turn that nobody sampled is new text where the family has a place for it', async () => {
  const { ask, turn } = open({ appendRoles: ['user', 'assistant'] });
  const before = await turn([user('a')], 'b');
  const made = [user('a'), assistant('b'), user('c'), assistant('made up'), user('d')];
  const prompt = await ask(made);
  assert.deepEqual([prompt.source, prompt.kept], ['history-changed', before.length]);
});

describe('checkpoints that are too many', () => {
  test('are forgotten, the oldest first and from their ends, but never those of the last path', async () => {
    const { ask, turn } = open({ mostIds: 45 });
    const answered = [user('a'), assistant('b')];
    await turn([user('a')], 'b');
    await turn([...answered, user('c')], 'd');
    await turn([user('x'.repeat(30))], 'y');
    const deep = await ask([...answered, user('c'), assistant('d'), user('e')]);
    assert.equal(deep.source, 'history-changed');
    assert.equal((await ask([...answered, user('c')])).source, 'fork');
    assert.equal((await ask([user('x'.repeat(30)), assistant('y'), user('z')])).source, 'append');
    await turn([user('w'.repeat(80))], 'v');
    assert.equal((await ask([...answered, user('c')])).source, 'history-changed');
    assert.equal((await ask([user('w'.repeat(80)), assistant('v'), user('u')])).source, 'append');
  });

  test('may be forgotten while a call goes on from them: its own is whole', async () => {
    const { session, ask, turn } = open({ mostIds: 60 });
    const before = await turn([user('a')], 'b');
    const running = await ask([user('a'), assistant('b'), user('c')]);
    await turn([user('x'.repeat(60))], 'y');
    session.answered(running, [100, toyIds.end], { text: 'd', reasoning: null, toolCalls: [] });
    const next = await ask([user('a'), assistant('b'), user('c'), assistant('d'), user('e')]);
    assert.equal(next.source, 'append');
    assert.ok(begins(next, [...before, ...running.ids.subarray(before.length), 100, toyIds.end]));
  });
});
