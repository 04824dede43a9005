/** The model that plays a script, where an agent offers no tools to play it with; how it calls tools is shown by the agents that have them. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ChatMessage } from '../../../src/engines/chat-message.ts';
import { toolScript } from '../../../src/engines/mock/policies/tool-script.ts';

const script = [{ shell: 'make', files: { 'a.py': 'x\n', b: 'y\n' } }, { say: 'Done.' }];
const instruction: ChatMessage = {
  role: 'user',
  content: `Do it.\n\`\`\`script\n${JSON.stringify(script)}\n\`\`\`\n`,
};
const asksForListings: ChatMessage = {
  role: 'system',
  content: 'You MUST return a *file listing* of it.',
};
const said = (content: string): ChatMessage => ({ role: 'assistant', content });
const asked: ChatMessage = { role: 'user', content: 'What is wrong with it?' };
const listings = 'a.py\n```\nx\n```\n\nb\n```\ny\n```\n';

const rows = [
  {
    title: 'says files in the format of aider, where that is asked for',
    messages: [asksForListings, instruction],
    content: listings,
  },
  {
    title: 'does not count turns that aider puts in of its own',
    messages: [asksForListings, instruction, said(listings), asked, said('Ok.'), asked],
    content: 'Done.',
  },
  {
    title: 'begins where the script stands, and not with the examples before it',
    messages: [asksForListings, asked, said('An example.'), instruction],
    content: listings,
  },
  { title: 'says that it is done elsewhere', messages: [instruction], content: 'done' },
];

describe('a scripted model without tools', () => {
  for (const { title, messages, content } of rows)
    test(title, () => {
      const rest = { turn: 0, model: 'm', seed: 1, random: () => 0 };
      assert.deepEqual(toolScript({ messages, tools: [], ...rest }), { content });
    });
});
