import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  noReplay,
  replayedTurns,
  replayTensors,
  type ReplayedTurn,
  type ReplayRules,
} from '../../../src/sessions/miles/replay.ts';
import { readContainer, type ReadSamples } from './read-container.ts';
import { said, SessionFixture, turnAnswer, user } from './session-fixture.ts';

type Fields = Readonly<Record<string, unknown>>;

const full: ReplayRules = { routedLayers: 2, hasIndexer: true, isAdditional: false };
const added: ReplayRules = { routedLayers: 2, hasIndexer: false, isAdditional: true };

/** Row `r` of `k` numbers for each of two layers: 100 r + 10 layer + place. */
function rows(from: number, to: number, k = 1): string {
  const values: number[] = [];
  for (let row = from; row < to; row += 1)
    for (const layer of [0, 1])
      for (let place = 0; place < k; place += 1) values.push(100 * row + 10 * layer + place);
  return Buffer.from(Int32Array.from(values).buffer).toString('base64');
}

function turn(
  promptEnd: number,
  outputs: number,
  { start = null, ...meta }: { readonly start?: number | null } & Fields = {},
): ReplayedTurn {
  const text = JSON.stringify({ choices: [{ meta_info: meta }] });
  return { promptEnd, outputIds: { length: outputs }, reply: { text }, replayStart: start };
}

const routed = (turns: readonly ReplayedTurn[], tokens: number, rules = added) =>
  replayTensors(turns, { tokens, rules }).routedExperts;

describe('replay payloads of a sample', () => {
  it('are those of its last turn, cut to its tokens', () => {
    const turns = [
      turn(3, 2, { routed_experts: rows(0, 4) }),
      turn(7, 3, {
        routed_experts: rows(0, 9),
        indexer_topk: rows(0, 9, 3),
        indexer_topk_num_layers: 2,
      }),
    ];
    const { routedExperts, indexerTopk } = replayTensors(turns, { tokens: 9, rules: full });
    assert.deepEqual(routedExperts?.shape, [8, 2, 1]);
    assert.deepEqual([...routedExperts.values].slice(-2), [700, 710]);
    assert.deepEqual(indexerTopk?.shape, [8, 2, 3]);
  });

  it('are none where nobody asks for them, or the engine says none', () => {
    const turns = [turn(3, 2, { routed_experts: rows(0, 4) })];
    const none = { routedExperts: null, indexerTopk: null };
    assert.deepEqual(replayTensors(turns, { tokens: 5, rules: noReplay }), none);
    assert.deepEqual(replayTensors([turn(3, 2)], { tokens: 5, rules: full }), none);
    assert.equal(routed([turn(3, 2, { start: 0 }), turn(7, 2, { start: 4 })], 9), null);
  });

  it('end a sample before a turn that lacks what the ones before it have', () => {
    const with1 = turn(3, 2, { routed_experts: rows(0, 4) });
    const with2 = turn(7, 2, { routed_experts: rows(0, 8) });
    assert.equal(replayedTurns([with1, with2], full), 2);
    assert.equal(replayedTurns([with1, turn(7, 2), with2], full), 1);
    assert.equal(replayedTurns([turn(3, 2), with2], full), 2);
    assert.equal(replayedTurns([with1, turn(7, 2)], noReplay), 2);
  });

  it('are put together of the rows that each turn adds, as the whole would be', () => {
    const whole = routed([turn(9, 3, { routed_experts: rows(0, 11, 2) })], 12, full);
    const parts = [
      turn(3, 2, { start: 0, routed_experts: rows(0, 4, 2) }),
      turn(6, 1, { start: 4, routed_experts: rows(4, 6, 2) }),
      turn(9, 3, { start: 6, routed_experts: rows(6, 11, 2) }),
    ];
    assert.deepEqual(routed(parts, 12), whole);
    // A middle turn that was cut bounds what is needed.
    assert.deepEqual(routed(parts.slice(0, 2), 6)?.shape, [5, 2, 2]);
  });

  it('may be empty where there is no row to say', () => {
    const turns = [
      turn(1, 1, { start: 0, routed_experts: rows(0, 1) }),
      turn(2, 0, { start: 1, routed_experts: '' }),
    ];
    assert.deepEqual(routed(turns, 2)?.shape, [1, 2, 1]);
  });

  const first = turn(3, 2, { start: 0, routed_experts: rows(0, 4) });
  const wrong: readonly (readonly [string, readonly ReplayedTurn[], RegExp])[] = [
    ['overlap', [first, turn(7, 2, { start: 3, routed_experts: rows(3, 8) })], /begin at 3, 4 are/],
    [
      'leave a gap',
      [first, turn(7, 2, { start: 5, routed_experts: rows(5, 8) })],
      /begin at 5, 4 are/,
    ],
    ['have no start', [first, turn(7, 2, { routed_experts: rows(4, 8) })], /named no start/],
    ['are empty where rows are due', [first, turn(7, 2, { start: 4 })], /0 numbers for 4 rows/],
    [
      'are of another count',
      [first, turn(7, 2, { start: 4, routed_experts: rows(4, 7) })],
      /6 numbers for 4 rows/,
    ],
    [
      'change their width',
      [first, turn(7, 2, { start: 4, routed_experts: rows(4, 8, 3) })],
      /3 experts to a layer, 1 before/,
    ],
    ['are no integers', [turn(3, 2, { start: 0, routed_experts: 'AAA=' })], /32-bit/],
    ['are no text', [turn(3, 2, { start: 0, routed_experts: 7 })], /no text/],
  ];
  for (const [title, turns, message] of wrong)
    it(`are an error where they ${title}`, () => {
      assert.throws(() => routed(turns, 9), message);
    });

  it('of the indexer are an error without the number of its layers', () => {
    const turns = [turn(3, 2, { indexer_topk: rows(0, 4) })];
    assert.throws(
      () => replayTensors(turns, { tokens: 5, rules: full }),
      /indexer_topk_num_layers/,
    );
    const whole = turn(3, 2, { routed_experts: rows(0, 3) });
    assert.throws(() => routed([whole], 5, full), /not 4 rows of 2 layers/);
  });
});

async function samplesOf(fixture: SessionFixture, id: string): Promise<ReadSamples> {
  const answer = await fixture.call('POST', `/sessions/${id}/samples`);
  assert.equal(answer.status, 200, answer.text);
  return readContainer(answer.bytes);
}

const asked = ({ text }: { readonly text: string }): Fields => JSON.parse(text) as Fields;

/** Says the rows that its request asks for. */
const replaying = (request: { readonly text: string }) => {
  const { input_ids: ids, routed_experts_start_len: start = 0 } = asked(request);
  const total = (ids as readonly number[]).length + 3;
  return turnAnswer({ text: 'ok', meta: { routed_experts: rows(Number(start), total - 1) } });
};

describe('a session with replay', () => {
  it('paused in place asks for new rows only: from 0 at first, then from one before the end, also after a turn that was taken back', async () => {
    await using fixture = await SessionFixture.start({ replay: added });
    fixture.engine.script = replaying;
    const id = await fixture.newSession();
    const history = [user('a')];
    await fixture.chat(id, history);
    await fixture.chat(id, [...history, said(), user('b')]);
    await fixture.chat(id, [...history, said(), user('other')]);
    const starts = fixture.engine.requests.map((one) => asked(one)['routed_experts_start_len']);
    const ends = fixture.engine.requests.map(
      (one) => (asked(one)['input_ids'] as number[]).length + 3,
    );
    assert.deepEqual(starts, [0, (ends[0] ?? 0) - 1, (ends[0] ?? 0) - 1]);
    const { records } = await fixture.view(id);
    assert.equal((records[1]?.['request'] as Fields)['routed_experts_start_len'], starts[1]);
    const [sample] = (await samplesOf(fixture, id)).samples;
    const length = (sample?.tokens.length ?? 0) - 1;
    assert.deepEqual(sample?.routedExperts?.shape, [length, 2, 1]);
    assert.deepEqual(
      sample.routedExperts.values,
      Array.from({ length }, (_, row) => [100 * row, 100 * row + 10]).flat(),
    );
    assert.equal(sample.indexerTopk, null);
  });

  it('paused in another way asks for all rows, whatever the client says, and without replay for none', async () => {
    for (const replay of [full, noReplay]) {
      await using fixture = await SessionFixture.start({ replay });
      fixture.engine.script = replaying;
      const id = await fixture.newSession();
      await fixture.chat(id, [user('a')], { return_routed_experts: false });
      const [request] = fixture.engine.requests;
      assert.ok(request !== undefined);
      const fields = asked(request);
      assert.equal('routed_experts_start_len' in fields, false);
      assert.equal(fields['return_routed_experts'], replay === full);
      assert.equal(fields['return_indexer_topk'], replay === full ? true : undefined);
      const [sample] = (await samplesOf(fixture, id)).samples;
      assert.equal(sample?.routedExperts === null, replay === noReplay);
    }
  });

  it('refuses samples whose payloads are not about their tokens', async () => {
    await using fixture = await SessionFixture.start({ replay: full });
    fixture.engine.says({ text: 'ok', meta: { routed_experts: rows(0, 1) } });
    const id = await fixture.newSession();
    await fixture.chat(id, [user('a')]);
    const answer = await fixture.call('POST', `/sessions/${id}/samples`);
    assert.equal(answer.status, 422);
    assert.match(answer.text, /replay payload/);
  });
});
