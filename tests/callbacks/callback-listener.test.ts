import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { CallbackListener } from '../../src/callbacks/callback-listener.ts';
import { CallbackRendezvous, type RolloutEnd } from '../../src/callbacks/callback-rendezvous.ts';
import { never } from '../../src/core/linked-abort.ts';
import { rolloutIdMaxBytes } from '../../src/wire/rollout/rollout-id.ts';

class Bench implements AsyncDisposable {
  readonly commits: RolloutEnd[] = [];
  readonly conflicts: string[] = [];
  readonly rendezvous: CallbackRendezvous;
  readonly listener: CallbackListener;
  commit: (end: RolloutEnd) => Promise<Record<string, unknown> | undefined> = async () => undefined;

  constructor() {
    this.rendezvous = new CallbackRendezvous({
      commit: async (end) => {
        this.commits.push(end);
        return await this.commit(end);
      },
      onConflict: (id, channel) => this.conflicts.push(`${id} ${channel}`),
    });
    this.listener = new CallbackListener({ rendezvous: this.rendezvous, apiKey: 'the-key' });
  }

  async post(path: string, body: unknown, authorization: string | null = 'Bearer the-key') {
    const answer = await fetch(`${this.listener.url}${path}`, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(authorization !== null && { authorization }),
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    });
    return { status: answer.status, body: await answer.json() };
  }

  completion(id: string, more: object = {}) {
    const path = `/v1/rollouts/${encodeURIComponent(id)}/completion`;
    return this.post(path, { status: 'success', rollout_id: id, ...more });
  }

  grader(id: string, more: object = {}) {
    const path = `/v1/rollouts/${encodeURIComponent(id)}/grader`;
    return this.post(path, { status: 'success', rollout_id: id, sample: { reward: 1 }, ...more });
  }

  static async start(): Promise<Bench> {
    const bench = new Bench();
    await bench.listener.start();
    return bench;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.listener.close();
  }
}

describe('the listener of callbacks', () => {
  const keys: readonly [string | null, number][] = [
    [null, 401],
    ['', 401],
    ['the-key', 401],
    ['Basic the-key', 401],
    ['Bearer other-k', 401],
    ['Bearer the-key-and-more', 401],
    ['Bearer the-key', 404],
    ['bEARER the-key', 404],
  ];
  for (const [authorization, status] of keys)
    test(`answers ${status} to the authorisation ${String(authorization)}`, async () => {
      await using bench = await Bench.start();
      const path = '/v1/rollouts/r/grader';
      assert.equal((await bench.post(path, { status: 'success' }, authorization)).status, status);
    });

  test('an empty key is refused', () => {
    const rendezvous = new CallbackRendezvous();
    assert.throws(() => new CallbackListener({ rendezvous, apiKey: ' ' }), /is empty/);
  });

  const wrong: readonly [string, string, unknown][] = [
    ['an id with a slash', '/v1/rollouts/a%2Fb/grader', { status: 'success' }],
    ['an id with a backslash', '/v1/rollouts/a%5Cb/grader', { status: 'success' }],
    ['another id in the body', '/v1/rollouts/r/grader', { status: 'success', rollout_id: 'x' }],
    ['a status that is no end', '/v1/rollouts/r/grader', { status: 'pending' }],
    ['a grade that is cancelled', '/v1/rollouts/r/grader', { status: 'cancelled' }],
    ['no status', '/v1/rollouts/r/completion', {}],
    ['a running completion', '/v1/rollouts/r/completion', { status: 'running' }],
    ['a list', '/v1/rollouts/r/completion', []],
    ['no JSON', '/v1/rollouts/r/completion', '{'],
  ];
  for (const [what, path, body] of wrong)
    test(`answers 422 to ${what}`, async () => {
      await using bench = await Bench.start();
      bench.rendezvous.register('r', { isGraded: true });
      assert.equal((await bench.post(path, body)).status, 422);
      assert.deepEqual(bench.commits, []);
    });

  test('the grader ends a rollout, with the completion that came before', async () => {
    await using bench = await Bench.start();
    const id = 'tenant::r 1%';
    bench.rendezvous.register(id, { isGraded: true });
    const ended = bench.rendezvous.ended(id, never);
    assert.deepEqual(await bench.completion(id), { status: 200, body: { ok: true } });
    assert.deepEqual(bench.commits, []);
    bench.commit = async () => ({ ok: true, trajectory: {} });
    const ack = { status: 200, body: { ok: true, trajectory: {} } };
    assert.deepEqual(await bench.grader(id), ack);
    assert.equal((await ended).completion?.['status'], 'success');
    assert.deepEqual((await ended).grader?.['sample'], { reward: 1 });
    assert.deepEqual(await bench.completion(id), ack, 'a late completion gets what is stored');
    assert.equal(bench.commits.length, 1);
    assert.throws(() => bench.rendezvous.register(id, { isGraded: true }), /is or was under way/);
  });

  test('the longest id that a server takes is taken here too', async () => {
    await using bench = await Bench.start();
    for (const id of ['r'.repeat(rolloutIdMaxBytes), 'ä'.repeat(rolloutIdMaxBytes / 2)]) {
      bench.rendezvous.register(id, { isGraded: true });
      assert.equal((await bench.completion(id)).status, 200);
    }
  });

  test('a rollout that nobody grades ends with its completion', async () => {
    await using bench = await Bench.start();
    bench.rendezvous.register('r', { isGraded: false });
    await bench.completion('r', { status: 'failure' });
    const { by, completion, grader } = await bench.rendezvous.ended('r', never);
    assert.deepEqual([by, completion?.['status'], grader], ['callback', 'failure', null]);
  });

  test('an equal duplicate is acknowledged, another one reported; the first stays', async () => {
    await using bench = await Bench.start();
    bench.rendezvous.register('r', { isGraded: true });
    const answers = [await bench.completion('r'), await bench.completion('r')];
    answers.push(await bench.completion('r', { status: 'failure' }));
    answers.push(await bench.grader('r'), await bench.grader('r'));
    answers.push(await bench.grader('r', { sample: { reward: 0 } }));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    assert.deepEqual(bench.conflicts, ['r completion', 'r grader']);
    const { completion, grader } = await bench.rendezvous.ended('r', never);
    assert.deepEqual([completion?.['status'], grader?.['sample']], ['success', { reward: 1 }]);
    assert.equal(bench.commits.length, 1);
  });

  test('nobody is acknowledged before the commit resolved, and there is one at a time', async () => {
    await using bench = await Bench.start();
    bench.rendezvous.register('r', { isGraded: true });
    const durable = Promise.withResolvers<undefined>();
    bench.commit = () => durable.promise;
    const answers: unknown[] = [];
    const posts = [bench.grader('r'), bench.grader('r')].map(async (post) =>
      answers.push((await post).status),
    );
    const late = bench.rendezvous.timeOut('r');
    assert.equal((await bench.post('/v1/rollouts/none/grader', { status: 'success' })).status, 404);
    assert.deepEqual(answers, []);
    durable.resolve(undefined);
    await Promise.all(posts);
    assert.deepEqual(answers, [200, 200]);
    assert.equal(bench.commits.length, 1);
    assert.equal((await late).by, bench.commits[0]?.by);
  });

  test('a commit that failed is answered with 500, and the next callback commits', async () => {
    await using bench = await Bench.start();
    bench.rendezvous.register('r', { isGraded: true });
    bench.commit = () => Promise.reject(new Error('disk full: secret'));
    const refused = await bench.grader('r');
    assert.deepEqual(refused, {
      status: 500,
      body: { detail: 'the result could not be committed' },
    });
    bench.commit = async () => undefined;
    assert.equal((await bench.grader('r')).status, 200);
    assert.equal(bench.commits.length, 2);
  });

  test('after a timeout or a cancellation callbacks get their acknowledgement, and are no conflict', async () => {
    await using bench = await Bench.start();
    bench.rendezvous.register('late', { isGraded: true });
    bench.rendezvous.register('gone', { isGraded: true });
    assert.equal((await bench.rendezvous.timeOut('late')).by, 'timeout');
    assert.equal((await bench.rendezvous.cancel('gone')).by, 'cancelled');
    assert.deepEqual((await bench.grader('late')).body, {
      ok: true,
      error_type: 'callback_timeout',
    });
    assert.deepEqual((await bench.grader('gone')).body, { ok: true });
    assert.equal((await bench.completion('gone')).status, 200);
    assert.equal((await bench.rendezvous.timeOut('gone')).by, 'cancelled');
    assert.deepEqual(bench.conflicts, []);
    assert.deepEqual(
      bench.commits.map(({ by }) => by),
      ['timeout'],
    );
  });

  test('waiting ends with its signal', async () => {
    const rendezvous = new CallbackRendezvous();
    rendezvous.register('r', { isGraded: true });
    const abort = new AbortController();
    const waiting = rendezvous.ended('r', abort.signal);
    abort.abort(new Error('enough'));
    await assert.rejects(waiting, /enough/);
    await assert.rejects(rendezvous.ended('unknown', never), /no rollout/);
  });
});
