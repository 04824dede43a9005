import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { readContainer, type ReadSamples } from './read-container.ts';
import { bytesOf, toyCodec, toyIds } from './toy-codec.ts';
import { result, said, SessionFixture, user, type Answer } from './session-fixture.ts';

type Fields = Readonly<Record<string, unknown>>;

const contents = (record: Fields | undefined): unknown[] =>
  ((record?.['request'] as Fields)['messages'] as Fields[]).map(({ content }) => content);

async function samplesOf(fixture: SessionFixture, id: string, body?: Fields): Promise<ReadSamples> {
  const answer = await fixture.call('POST', `/sessions/${id}/samples`, { body });
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers.get('content-type'), 'application/octet-stream');
  return readContainer(answer.bytes);
}

/** After a turn for each of `asked`, in one conversation. */
async function talked(
  fixture: SessionFixture,
  asked: readonly Fields[],
): Promise<{
  readonly id: string;
  readonly history: readonly Fields[];
}> {
  const id = await fixture.newSession();
  const history: Fields[] = [];
  for (const message of asked) {
    history.push(message);
    assert.equal((await fixture.chat(id, history)).status, 200);
    history.push(said());
  }
  return { id, history };
}

const statusOf = ({ status }: Answer): number => status;

describe('a session of the first version', () => {
  it('goes on from the ids of the turn before, and encodes the new text only', async () => {
    await using fixture = await SessionFixture.start();
    // Ids that encoding the text would never give.
    fixture.engine.says({ ids: [111, 107, 0xc3, toyIds.end] }, {});
    const id = await fixture.newSession();
    await fixture.chat(id, [user('a')]);
    await fixture.chat(id, [user('a'), said(), result('b')]);
    const first = [toyIds.user, 97, toyIds.end, 10, toyIds.assistant, 111, 107, 0xc3, toyIds.end];
    assert.deepEqual(fixture.engine.body(1)['input_ids'], [
      ...first,
      ...[10, toyIds.tool, 98, toyIds.end, 10, toyIds.assistant],
    ]);
    const { metadata } = await fixture.view(id);
    const [mismatch] = metadata['tito_session_mismatch'] as Fields[];
    assert.deepEqual(
      [mismatch?.['type'], mismatch?.['segment_index']],
      ['assistant_text', 5],
      JSON.stringify(metadata),
    );
  });

  for (const { title, retried } of [
    { title: 'the same result', retried: 'r' },
    { title: 'another result', retried: 'other' },
  ])
    it(`takes the last turn again with ${title} of its tool, and holds two records as before`, async () => {
      await using fixture = await SessionFixture.start();
      const { id } = await talked(fixture, [user('a'), result('r')]);
      fixture.engine.says({ text: 'again' });
      const answer = await fixture.chat(id, [user('a'), said(), result(retried)]);
      assert.equal(answer.status, 200);
      const { records } = await fixture.view(id);
      assert.equal(records.length, 2);
      assert.deepEqual(contents(records[1]), ['a', 'ok', retried]);
      assert.ok(JSON.stringify(records[1]).includes('again'));
    });

  it('is empty again when its first turn is asked anew, and goes on from the second answer', async () => {
    await using fixture = await SessionFixture.start();
    const { id } = await talked(fixture, [user('a')]);
    fixture.engine.says({ text: 'second' });
    assert.equal((await fixture.chat(id, [user('b')])).status, 200);
    assert.equal((await fixture.view(id)).records.length, 1);
    assert.equal((await fixture.chat(id, [user('b'), said('second'), user('c')])).status, 200);
    assert.equal((await fixture.view(id)).records.length, 2);
  });

  it('takes its whole history once more as a turn behind it', async () => {
    await using fixture = await SessionFixture.start();
    const { id, history } = await talked(fixture, [user('a')]);
    assert.equal((await fixture.chat(id, history)).status, 200);
    assert.equal((await fixture.view(id)).records.length, 2);
  });

  it('does not go back by more than one turn, and is left as it was', async () => {
    await using fixture = await SessionFixture.start();
    const { id, history } = await talked(fixture, [user('a'), user('b'), user('c')]);
    const answer = await fixture.chat(id, [user('a'), said(), user('x')]);
    assert.deepEqual(
      [answer.status, answer.text],
      [
        400,
        '{"error":"rollback failed: discard_count=2 exceeds max_assistant_rollback_steps=1 (stored has 6 messages, request has 3 messages)"}',
      ],
    );
    assert.equal(answer.headers.get('x-slipway-error'), 'SESSION_HISTORY_BROKEN');
    assert.equal((await fixture.view(id)).records.length, 3);
    // A request shorter than what is stored differs from it where it ends.
    assert.equal(statusOf(await fixture.chat(id, history.slice(0, 5))), 200);
    assert.equal((await fixture.view(id)).records.length, 3);
  });

  it('counts what the client says for the assistant as history, not as turns', async () => {
    await using fixture = await SessionFixture.start();
    const shots = [user('q1'), said('a1'), user('q2'), said('a2')];
    const id = await fixture.newSession();
    await fixture.chat(id, [...shots, user('q3')]);
    assert.equal(statusOf(await fixture.chat(id, [user('q1'), said('other'), user('q3')])), 200);
    assert.equal((await fixture.view(id)).records.length, 1);
  });

  it('refuses a role that may not stand behind a turn, and is rolled back all the same', async () => {
    const codec = toyCodec({ appendRoles: ['tool', 'user'] });
    await using fixture = await SessionFixture.start({ codec });
    const { id } = await talked(fixture, [user('a'), user('b')]);
    const system = { role: 'system', content: 's' };
    const answer = await fixture.chat(id, [user('a'), said(), system]);
    assert.equal(answer.status, 400);
    assert.match(
      String(answer.json['error']),
      /; the selected TITO fixed template does not support appending this role$/,
    );
    assert.equal((await fixture.view(id)).records.length, 1);
  });

  it('answers four equal continuations at once, and records the first that ends', async () => {
    await using fixture = await SessionFixture.start();
    const { id, history } = await talked(fixture, [user('a')]);
    const all = Promise.withResolvers<undefined>();
    const { script } = fixture.engine;
    fixture.engine.script = async (request, at) => {
      if (fixture.engine.running === 4) all.resolve(undefined);
      await all.promise;
      return script(request, at);
    };
    const more = [...history, user('b')];
    const answers = await Promise.all([1, 2, 3, 4].map(() => fixture.chat(id, more)));
    assert.deepEqual(answers.map(statusOf), [200, 200, 200, 200]);
    assert.equal(fixture.engine.requests.length, 5);
    assert.equal((await fixture.view(id)).records.length, 2);
  });

  it('does not wait for other sessions', async () => {
    await using fixture = await SessionFixture.start();
    const all = Promise.withResolvers<undefined>();
    const { script } = fixture.engine;
    fixture.engine.script = async (request, at) => {
      if (fixture.engine.running === 6) all.resolve(undefined);
      await all.promise;
      return script(request, at);
    };
    const ids = await Promise.all([1, 2, 3, 4, 5, 6].map(() => fixture.newSession()));
    await Promise.all(ids.map((id) => fixture.chat(id, [user('a')])));
    assert.equal(fixture.engine.mostRunning, 6);
  });

  it('answers a call whose session was deleted meanwhile, and a new one not', async () => {
    await using fixture = await SessionFixture.start();
    const id = await fixture.newSession();
    const { script } = fixture.engine;
    fixture.engine.script = async (request, at) => {
      assert.equal(statusOf(await fixture.call('DELETE', `/sessions/${id}`)), 204);
      return script(request, at);
    };
    assert.equal(statusOf(await fixture.chat(id, [user('a')])), 200);
    assert.equal(statusOf(await fixture.chat(id, [user('a')])), 404);
  });

  for (const { title, matches, status } of [
    {
      title: 'raises',
      matches: () => {
        throw new Error('no');
      },
      status: 500,
    },
    {
      title: 'answers with something other than a boolean',
      matches: () => 1 as unknown as boolean,
      status: 500,
    },
  ])
    it(`answers 500 where its matcher ${title}`, async () => {
      await using fixture = await SessionFixture.start({ matches });
      const { id, history } = await talked(fixture, [user('a')]);
      const answer = await fixture.chat(id, [...history, user('b')]);
      assert.equal(answer.status, status);
      assert.match(String(answer.json['error']), /^the session message matcher r/);
    });

  it('gives its turns as one sample: what was sampled is trained, all else is not', async () => {
    await using fixture = await SessionFixture.start();
    fixture.engine.says(
      { ids: [111, 107, toyIds.end], logprobs: [-0.1, -1e-300, -2] },
      { ids: [120, toyIds.end], logprobs: [-0.25, -3.5], finish: 'tool_calls' },
    );
    const { id } = await talked(fixture, [user('a'), result('r')]);
    const { samples, sessionMetadata, emptyReason } = await samplesOf(fixture, id);
    const prompt = [toyIds.user, 97, toyIds.end, 10, toyIds.assistant];
    const between = [10, toyIds.tool, 114, toyIds.end, 10, toyIds.assistant];
    const tokens = [...prompt, 111, 107, toyIds.end, ...between, 120, toyIds.end];
    assert.deepEqual(samples[0]?.tokens, tokens);
    assert.deepEqual(samples[0].lossMask, [1, 1, 1, ...between.map(() => 0), 1, 1]);
    const logprobs = [-0.1, -1e-300, -2, ...between.map(() => 0), -0.25, -3.5];
    assert.deepEqual(samples[0].logprobs, logprobs);
    const { metadata, nulls, ...fields } = samples[0].fields;
    assert.deepEqual(fields, {
      response: 'ok<end>\n<tool>r<end>\n<assistant>x<end>',
      response_length: 11,
      status: 'completed',
      weight_versions: ['v3', 'v3'],
      prefix_cache_info: { cached_tokens: 4, total_prompt_tokens: 14 },
    });
    assert.deepEqual(metadata, {
      lifecycle: [
        { t0: null, t1: 1_700_000_002, turn: 0, req_ts: 1_700_000_001 },
        { t0: null, t1: 1_700_000_004, turn: 1, req_ts: 1_700_000_003, prev_t1: 1_700_000_002 },
      ],
    });
    assert.equal((nulls as unknown[]).length, 2);
    assert.equal(emptyReason, null);
    assert.deepEqual(sessionMetadata['accumulated_token_ids'], tokens);
    assert.equal(sessionMetadata['max_trim_tokens'], 0);
  });

  it('leaves out ends of outputs that the template replaced, and keeps one that it put there again', async () => {
    await using fixture = await SessionFixture.start({ codec: toyCodec({ boundary: 'opener' }) });
    // The model stops at the opener of a user's turn; a tool speaks first, a user then.
    fixture.engine.says(
      ...['o', 'p', 'q'].map((text) => ({
        text,
        ids: [...bytesOf(text), toyIds.user],
      })),
    );
    const id = await fixture.newSession();
    const turns = [user('a'), said('o'), result('r'), said('p'), user('b')];
    for (const count of [1, 3, 5]) await fixture.chat(id, turns.slice(0, count));
    const { samples, sessionMetadata } = await samplesOf(fixture, id);
    const tokens = [
      ...[toyIds.user, 97, toyIds.assistant, 111],
      ...[toyIds.tool, 114, toyIds.assistant, 112, toyIds.user],
      ...[98, toyIds.assistant, 113, toyIds.user],
    ];
    assert.deepEqual(samples[0]?.tokens, tokens);
    assert.deepEqual(samples[0].lossMask, [1, 0, 0, 0, 1, 1, 0, 0, 1, 1]);
    assert.deepEqual(
      [sessionMetadata['max_trim_tokens'], sessionMetadata['tito_session_mismatch']],
      [1, []],
    );
  });

  for (const { title, limit, length, mask } of [
    { title: 'within the limit it is whole', limit: 16, length: 16, mask: '11100000011' },
    { title: 'its last output is cut', limit: 15, length: 15, mask: '1110000001' },
    { title: 'a turn whose output is too short for that goes', limit: 14, length: 8, mask: '111' },
    { title: 'the first output is cut', limit: 6, length: 6, mask: '1' },
  ])
    it(`is truncated where a limit says so: ${title}`, async () => {
      await using fixture = await SessionFixture.start();
      fixture.engine.says({}, { text: 'x' });
      const { id } = await talked(fixture, [user('a'), result('r')]);
      const { samples } = await samplesOf(fixture, id, { max_seq_len: limit });
      assert.equal(samples[0]?.tokens.length, length);
      assert.equal(samples[0].lossMask.join(''), mask);
      const isCut = length === limit && limit < 16;
      assert.equal(samples[0].fields['status'], isCut ? 'truncated' : 'completed');
    });

  it('says why it has no samples', async () => {
    await using fixture = await SessionFixture.start();
    const empty = await samplesOf(fixture, await fixture.newSession());
    assert.deepEqual([empty.samples, empty.emptyReason], [[], 'no_records']);
    const { id } = await talked(fixture, [user('a')]);
    const cut = await samplesOf(fixture, id, { max_seq_len: 5 });
    assert.deepEqual([cut.samples, cut.emptyReason], [[], 'all_truncated']);
  });

  for (const [finish, status] of [
    ['length', 'truncated'],
    ['abort', 'aborted'],
    ['content_filter', 'pending'],
  ])
    it(`has a sample that ends with the first turn that ended by ${String(finish)}`, async () => {
      await using fixture = await SessionFixture.start();
      fixture.engine.says({ ids: [111], ...(finish !== undefined && { finish }) }, {});
      const { id } = await talked(fixture, [user('a'), user('b')]);
      const { samples } = await samplesOf(fixture, id);
      assert.deepEqual(samples[0]?.lossMask, [1]);
      assert.equal(samples[0].fields['status'], status);
    });

  it('refuses a body for its samples that cannot be read', async () => {
    await using fixture = await SessionFixture.start();
    const path = `/sessions/${await fixture.newSession()}/samples`;
    for (const raw of ['{', '[]', '{"max_seq_len":"1"}', '{"metadata":1}'])
      assert.equal(statusOf(await fixture.call('POST', path, { raw })), 400, raw);
  });
});
