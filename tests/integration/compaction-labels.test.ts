/** What Claude Code and Codex ask when they compact, as recorded, is labelled as in the trial that it was recorded from. */
import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { describe, test } from 'node:test';
import { purposeOf } from '../../src/gateway/capture/side-calls.ts';
import type { CallMessage } from '../../src/sessions/forest-call.ts';
import { answerKey, contentTexts, wordsOf } from '../../src/sessions/message-words.ts';
import { assembleSamples } from '../../src/sessions/samples/assemble.ts';
import { TokenForest } from '../../src/sessions/token-forest.ts';
import { messageOf, readCompaction } from './clis/compaction-fixtures.ts';

/** One id for each message, that of an answer the same as of the message in which it comes back. */
function idOf(key: string): number {
  return Number.parseInt(hash('sha1', key, 'hex').slice(0, 7), 16);
}

function messageId(message: CallMessage): number {
  const words = wordsOf(message);
  return message.role === 'assistant'
    ? idOf(answerKey(words) ?? '')
    : idOf(JSON.stringify([message.role, contentTexts(message)]));
}

describe('a compaction', () => {
  for (const agent of ['claude-code', 'codex'])
    test(`of ${agent} is a branch behind a summary that was asked beside it`, () => {
      const forest = new TokenForest({ budget: null });
      for (const { messages: recorded, answer, ...call } of readCompaction(agent)) {
        const messages = recorded.map(messageOf);
        const outputIds = [idOf(answerKey(answer) ?? '')];
        forest.add({
          ...{ ...call, messages, answer, outputIds, promptIds: messages.map(messageId) },
          purpose: purposeOf({ messages }, call.client),
          ...{ logprobs: [-1], weightVersion: null, status: 'completed', cachedTokens: null },
        });
      }
      const edges = forest.nodes.map(({ edge: { label, reason, from }, parent }) => ({
        ...{ label, reason, from },
        parent: parent?.call ?? null,
      }));
      const summary = forest.nodes.find(({ purpose }) => purpose === 'summary');
      const { edge, parent } = summary ?? { edge: null, parent: null };
      assert.deepEqual(edge, { label: 'side-call', reason: 'summary', from: null });
      assert.deepEqual(
        edges.filter(({ label }) => label !== 'side-call'),
        [
          { label: 'opening', reason: null, from: null, parent: null },
          { label: 'append', reason: null, from: null, parent: 1 },
          { label: 'compaction', reason: 'summarised', from: summary?.call, parent: null },
          { label: 'append', reason: null, from: null, parent: 4 },
        ],
        JSON.stringify(parent?.call),
      );
      const samples = assembleSamples(forest);
      assert.deepEqual(
        samples.map(({ weight, spans }) => [weight, spans.map(({ node }) => node.call)]),
        [
          [0.5, [1, 2]],
          [0.5, [4, 5]],
        ],
      );
    });
});
