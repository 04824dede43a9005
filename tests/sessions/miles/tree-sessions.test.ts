import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { SamplePicker } from '../../../src/sessions/miles/sample-hooks.ts';
import { readContainer, type ReadSample } from './read-container.ts';
import {
  result,
  said,
  SessionFixture,
  user,
  type SessionFixtureOptions,
} from './session-fixture.ts';

type Fields = Readonly<Record<string, unknown>>;

const start = (options: SessionFixtureOptions = {}): Promise<SessionFixture> =>
  SessionFixture.start({ version: 'v2', ...options });

interface Counted extends AsyncDisposable {
  readonly fixture: SessionFixture;
  readonly id: string;
  readonly say: (...messages: readonly string[]) => Promise<number>;
}

/** Every turn answers with a text of its own: a0, a1, … */
async function counted(options: SessionFixtureOptions = {}): Promise<Counted> {
  const fixture = await start(options);
  fixture.engine.says(...Array.from({ length: 30 }, (_, at) => ({ text: `a${at}` })));
  const id = await fixture.newSession();
  /** `a…` are answers, `r…` results, all else are users. */
  const message = (text: string): Fields =>
    text.startsWith('a') ? said(text) : text.startsWith('r') ? result(text) : user(text);
  return {
    ...{ fixture, id, [Symbol.asyncDispose]: () => fixture[Symbol.asyncDispose]() },
    say: async (...messages) => (await fixture.chat(id, messages.map(message))).status,
  };
}

async function samplesOf(
  fixture: SessionFixture,
  id: string,
  body?: Fields,
): Promise<readonly ReadSample[]> {
  const answer = await fixture.call('POST', `/sessions/${id}/samples`, { body });
  assert.equal(answer.status, 200, answer.text);
  return readContainer(answer.bytes).samples;
}

const leafOf = ({ metadata }: ReadSample): Fields => metadata['leaf'] as Fields;

describe('a session of the second version', () => {
  it('keeps a branch that goes off deep down, and gives both as samples', async () => {
    await using session = await counted();
    const { fixture, id, say } = session;
    await say('u');
    await say('u', 'a0', 'v');
    await say('u', 'a0', 'v', 'a1', 'w');
    assert.equal(await say('u', 'a0', 'x'), 200);
    const { records, metadata } = await fixture.view(id);
    assert.equal(records.length, 2);
    const { nodes, leaves } = metadata['tree'] as { nodes: Fields[]; leaves: Fields[] };
    assert.deepEqual(
      nodes.map(({ id, parent }) => [id, parent]),
      [
        [0, null],
        [1, 0],
        [2, 1],
        [3, 0],
      ],
    );
    assert.deepEqual(nodes[3], {
      ...{ id: 3, parent: 0, seq: 3, truncated: false, committed_at: 1_700_000_008 },
      ...{ completion_span: [14, 17], num_tokens: 17, response_id: 'chatcmpl-1' },
    });
    assert.deepEqual(leaves, [
      { node_id: 2, path_node_ids: [0, 1, 2] },
      { node_id: 3, path_node_ids: [0, 3] },
    ]);
    const samples = await samplesOf(fixture, id);
    assert.deepEqual(
      samples.map((sample) => leafOf(sample)['path_node_ids']),
      [
        [0, 1, 2],
        [0, 3],
      ],
    );
    // What both share is trained in the one that was there first.
    const masks = samples.map(({ lossMask }) => lossMask.join(''));
    assert.ok(masks[0]?.startsWith('1110'));
    assert.equal(masks[1], '000000000111');
  });

  it('begins anew with another opening, in the same session', async () => {
    await using session = await counted();
    const { fixture, id, say } = session;
    await say('u');
    await say('v');
    assert.equal((await fixture.view(id)).records.length, 1);
    assert.deepEqual(
      (await samplesOf(fixture, id)).map((one) => leafOf(one)['node_id']),
      [1, 0],
    );
  });

  it('does not go on from a turn that was cut off, and takes another opening after that', async () => {
    await using fixture = await start();
    fixture.engine.says({ finish: 'length' }, {});
    const id = await fixture.newSession();
    await fixture.chat(id, [user('a')]);
    const answer = await fixture.chat(id, [user('a'), said(), user('b')]);
    assert.equal(answer.status, 409);
    assert.match(String(answer.json['error']), /^truncated generation cannot be extended/);
    assert.equal((await fixture.chat(id, [user('b')])).status, 200);
  });

  it('shows the place of a request from then on, even where it fails', async () => {
    await using session = await counted();
    const { fixture, id, say } = session;
    await say('u');
    await say('u', 'a0', 'v');
    fixture.engine.script = () => ({ status: 400, body: '{}' });
    await say('u', 'a0', 'x');
    assert.equal((await fixture.view(id)).records.length, 1);
    await say('z');
    assert.equal((await fixture.view(id)).records.length, 0);
  });

  for (const { title, request, parent } of [
    { title: 'an extension', request: ['u', 'a0', 'v', 'a1', 'w'], parent: 1 },
    { title: 'the whole history once more', request: ['u', 'a0', 'v', 'a1'], parent: 1 },
    { title: 'another message within', request: ['u', 'a0', 'x', 'a1', 'w'], parent: 0 },
    { title: 'another answer within a turn', request: ['u', 'a0', 'v', 'ax', 'w'], parent: 0 },
    { title: 'a front of the first turn', request: ['u'], parent: null },
    { title: 'one of two equal turns', request: ['m', 'a', 'w'], parent: 3 },
  ])
    it(`finds where ${title} goes on from`, async () => {
      await using session = await counted();
      const { fixture, id, say } = session;
      await say('u');
      await say('u', 'a0', 'v');
      fixture.engine.says({ text: 'a' });
      await say('m');
      await say('m');
      assert.equal(await say(...request), 200);
      const { metadata } = await fixture.view(id);
      const { nodes } = metadata['tree'] as { nodes: Fields[] };
      assert.equal(nodes.at(-1)?.['parent'], parent);
    });

  it('makes siblings of requests that run side by side', async () => {
    await using session = await counted();
    const { fixture, id, say } = session;
    await say('u');
    await Promise.all([say('u', 'a0', 'v'), say('u', 'a0', 'w'), say('u', 'a0', 'x')]);
    const { nodes } = (await fixture.view(id)).metadata['tree'] as { nodes: Fields[] };
    assert.deepEqual(
      nodes.map(({ parent }) => parent),
      [null, 0, 0, 0],
    );
  });

  it('takes no more turns than it may hold, and says so before the engine works', async () => {
    await using session = await counted({ maxNodes: 2 });
    const { fixture, say } = session;
    await say('u');
    await say('v');
    assert.equal(await say('w'), 409);
    assert.equal(fixture.engine.requests.length, 2);
  });

  it('gives of a line that was asked again what the first version gives, bit for bit', async () => {
    const lines = await Promise.all(
      (['v1', 'v2'] as const).map(async (version) => {
        await using session = await counted({ version });
        const { fixture, id, say } = session;
        await say('u');
        await say('u', 'a0', 'r1');
        await say('u', 'a0', 'r2');
        await say('u', 'a0', 'r2', 'a2', 'r3');
        await say('u', 'a0', 'r2', 'a2', 'r4');
        const [sample, ...others] = await samplesOf(fixture, id, { metadata: {} });
        assert.deepEqual(others, []);
        assert.ok(sample !== undefined);
        const { tokens, lossMask, logprobs, fields } = sample;
        const plain = { ...fields, reward: null, metadata: null };
        return { tokens, lossMask, logprobs, plain };
      }),
    );
    assert.deepEqual(lines[1], lines[0]);
  });

  it('keeps a branch that was left after more turns, and drops one that was only asked again', async () => {
    await using session = await counted();
    const { fixture, id, say } = session;
    await say('u');
    await say('u', 'a0', 'v');
    await say('u', 'a0', 'v', 'a1', 'w');
    await say('u', 'a0', 'x');
    await say('u', 'a0', 'x');
    assert.deepEqual(
      (await samplesOf(fixture, id)).map((one) => leafOf(one)['path_node_ids']),
      [
        [0, 1, 2],
        [0, 4],
      ],
    );
  });

  it('puts what the agent says into every sample, but not in the place of its own words', async () => {
    await using session = await counted();
    const { fixture, id, say } = session;
    await say('u');
    await say('v');
    const metadata = {
      reward: 0.5,
      exit_status: 'Submitted',
      leaf: 'mine',
      accumulated_token_ids: 1,
    };
    const answer = await fixture.call('POST', `/sessions/${id}/samples`, { body: { metadata } });
    const { samples, sessionMetadata } = readContainer(answer.bytes);
    for (const sample of samples) {
      assert.equal(sample.fields['reward'], 0.5);
      assert.equal(sample.metadata['exit_status'], 'Submitted');
      assert.equal(typeof leafOf(sample)['node_id'], 'number');
      assert.deepEqual(sample.metadata['accumulated_token_ids'], sample.tokens);
    }
    assert.deepEqual(sessionMetadata['agent'], metadata);
    const silent = await samplesOf(fixture, id);
    assert.deepEqual(
      silent.map(({ fields }) => fields['reward']),
      [null, null],
    );
  });

  for (const reward of [0, false, 'good', { tests: 1 }])
    it(`gives every sample the reward ${JSON.stringify(reward)}, of whatever kind`, async () => {
      await using session = await counted();
      const { fixture, id, say } = session;
      await say('u');
      const [sample] = await samplesOf(fixture, id, { metadata: { reward } });
      assert.deepEqual(sample?.fields['reward'], reward);
    });

  for (const { title, pick, message } of [
    {
      title: 'raises',
      pick: () => {
        throw new Error('no taste');
      },
      message: 'no taste',
    },
    {
      title: 'gives back a stranger',
      pick: (samples) => samples.map((one) => ({ ...one })),
      message: 'the picker gave back a sample that it was not given',
    },
    {
      title: 'gives one back twice',
      pick: (samples) => [...samples, ...samples],
      message: 'the picker gave back a sample twice',
    },
    {
      title: 'is not synchronous',
      pick: (async () => []) as unknown as SamplePicker,
      message: 'the picker gave back no list',
    },
  ] as readonly { title: string; pick: SamplePicker; message: string }[])
    it(`answers 422 in plain text where a picker ${title}`, async () => {
      await using session = await counted({ picker: { name: 'mine.ts:pick', pick } });
      const { fixture, id, say } = session;
      await say('u');
      const answer = await fixture.call('POST', `/sessions/${id}/samples`);
      assert.equal(answer.status, 422);
      assert.match(answer.headers.get('content-type') ?? '', /^text\/plain/);
      assert.equal(
        answer.text,
        `session sample hook failed (picker=mine.ts:pick, postprocessor=default_postprocess): ${message}`,
      );
    });

  it('says that all was cut away where a picker takes nothing', async () => {
    await using session = await counted({ picker: { name: 'none', pick: () => [] } });
    const { fixture, id, say } = session;
    await say('u');
    const answer = await fixture.call('POST', `/sessions/${id}/samples`);
    assert.equal(readContainer(answer.bytes).emptyReason, 'all_truncated');
  });
});
