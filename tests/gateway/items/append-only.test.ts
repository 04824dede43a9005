import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { chatMessages, type MessageRules } from '../../../src/gateway/items/chat-messages.ts';
import type { ConversationItem } from '../../../src/gateway/items/conversation.ts';
import { ToolNames } from '../../../src/gateway/items/tool-names.ts';
import { seededRandom } from '../../support/random.ts';
import { calls, image, returns, says, thinks, toolSpec } from './conversations.ts';

const rules: MessageRules = { systemTurns: 'positional-user', reasoningField: 'reasoning_content' };
const conversations = 2_000;

describe('requests of one conversation', () => {
  for (const systemTurns of ['positional-user', 'positional-system'] as const)
    it(`begin with the request before, byte for byte, under the rule ${systemTurns}`, () => {
      assert.equal(brokenPrefixes({ ...rules, systemTurns }), 0);
    });

  it('do not where system turns move to the front, which shows that the check can fail', () => {
    assert.notEqual(brokenPrefixes({ ...rules, systemTurns: 'hoist' }), 0);
  });
});

function brokenPrefixes(given: MessageRules): number {
  let broken = 0;
  for (let seed = 1; seed <= conversations; seed++) {
    const random = seededRandom(seed);
    const items: ConversationItem[] = [];
    // Tools that join later must not rename those that were there.
    const tools = [toolSpec('run'), toolSpec('b', { namespace: 'a' })];
    let before = '';
    for (let turn = 0; turn < 1 + Math.floor(random() * 5); turn++) {
      if (turn > 0) items.push(...answer(random, turn));
      items.push(...others(random, items));
      if (random() < 0.2) tools.push(toolSpec(`a__b${'.'.repeat(turn)}`));
      const messages = chatMessages(items, new ToolNames(tools), given);
      const now = messages.map((message) => JSON.stringify(message)).join('\n');
      if (!`${now}\n`.startsWith(before === '' ? '' : `${before}\n`)) broken += 1;
      before = now;
    }
  }
  return broken;
}

/** What a model says: at least one thing. */
function answer(random: () => number, turn: number): readonly ConversationItem[] {
  const said: ConversationItem[] = [];
  while (said.length === 0 || random() < 0.6) {
    const which = random();
    if (which < 0.2) said.push(thinks('Hm.'));
    else if (which < 0.5) said.push(says('assistant', words(random)));
    else {
      const call = calls(`c${turn}-${random() < 0.1 ? 0 : said.length}`, 'b');
      const isNamespaced = call.kind === 'tool-call' && random() < 0.5;
      said.push(isNamespaced ? { ...call, tool: { name: 'b', namespace: 'a' } } : call);
    }
  }
  return said;
}

/** What comes before the model speaks again: results in any order, missing or strange ones, texts, system turns. */
function others(
  random: () => number,
  items: readonly ConversationItem[],
): readonly ConversationItem[] {
  const added: ConversationItem[] = [];
  for (const item of items)
    if (item.kind === 'tool-call' && random() < 0.5)
      added.push(returns(item.callId, words(random)));
  while (added.length === 0 || random() < 0.6) {
    const which = random();
    if (which < 0.5) added.push(says('user', words(random)));
    else if (which < 0.6) added.push(says('user', image('https://host.test/a.png')));
    else if (which < 0.8) added.push(says(random() < 0.5 ? 'system' : 'developer', words(random)));
    else added.push({ ...returns('c-unknown', words(random)), isError: random() < 0.5 });
  }
  return added.sort(() => random() - 0.5);
}

function words(random: () => number): string {
  return ['', ' ', 'Hello', 'é"\\\n', '🙂'][Math.floor(random() * 5)] ?? '';
}
