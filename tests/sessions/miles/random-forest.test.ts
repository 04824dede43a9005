/** Random sessions of the second version: which leaves are kept, and in which of them each completion is trained. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { silentLogger } from '../../../src/core/logger.ts';
import { readChatReply } from '../../../src/sessions/miles/chat-reply.ts';
import { strictMatcher } from '../../../src/sessions/miles/message-matcher.ts';
import { MilesSession } from '../../../src/sessions/miles/miles-session.ts';
import { noReplay } from '../../../src/sessions/miles/replay.ts';
import { defaultPostprocess, dropRetries } from '../../../src/sessions/miles/sample-hooks.ts';
import { messagesOf, pathTo } from '../../../src/sessions/miles/turn-node.ts';
import { readContainer } from './read-container.ts';
import { turnAnswer, user } from './session-fixture.ts';
import { toyCodec } from './toy-codec.ts';

function randomSession(seed: number): MilesSession {
  let state = seed;
  const below = (bound: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
  let seconds = 0;
  const session = new MilesSession('s', {
    ...{ version: 'v2', codec: toyCodec(), matches: strictMatcher, templateVariables: {} },
    picker: { name: 'drop_retries', pick: dropRetries },
    postprocessor: { name: 'default_postprocess', process: defaultPostprocess },
    ...{ maxNodes: 1_024, logger: silentLogger, nowS: () => (seconds += 1) },
    replay: noReplay,
  });
  for (let turn = 0; turn < 20; turn += 1) {
    const { nodes } = session.turns;
    const from = below(6) === 0 ? null : (nodes[nodes.length - 1 - below(4)] ?? null);
    // Few texts: some turns are asked again as they were.
    const messages = [...messagesOf(from), user(`u${below(3)}`)];
    const prepared = session.turns.prepare(session.read(Buffer.from(JSON.stringify({ messages }))));
    const answer = turnAnswer({ text: `a${turn}` });
    assert.ok(session.turns.commit(prepared, readChatReply(answer.body)));
  }
  return session;
}

it('trains every completion on a kept path in exactly one leaf, and keeps no leaf that was asked again', () => {
  for (let seed = 1; seed <= 40; seed += 1) {
    const session = randomSession(seed);
    const { nodes } = session.turns;
    const metadata = { reward: seed };
    const { samples } = readContainer(session.samples({ maxTokens: null, agent: metadata }));
    const trained = new Map<number, number>();
    const kept = new Set<number>();
    for (const sample of samples) {
      const leaf = sample.metadata['leaf'] as { node_id: number; parent: number | null };
      const siblings = nodes.filter(({ parent }) => (parent?.seq ?? null) === leaf.parent);
      assert.ok(leaf.parent === null || siblings.at(-1)?.seq === leaf.node_id, 'an older retry');
      assert.deepEqual(sample.tokens, sample.metadata['accumulated_token_ids']);
      assert.equal(sample.fields['reward'], seed);
      const begin = sample.tokens.length - sample.lossMask.length;
      for (const { seq, promptEnd, end } of pathTo(nodes[leaf.node_id]!)) {
        kept.add(seq);
        const bits = new Set(sample.lossMask.slice(promptEnd - begin, end - begin));
        assert.equal(bits.size, 1, 'half a completion is trained');
        if (bits.has(1)) trained.set(seq, (trained.get(seq) ?? 0) + 1);
      }
    }
    assert.deepEqual(
      [...trained].toSorted(([a], [b]) => a - b),
      [...kept].toSorted((a, b) => a - b).map((seq) => [seq, 1]),
    );
  }
});
