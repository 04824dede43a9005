import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { entryOf } from '../../src/callbacks/delivery-entry.ts';
import { never } from '../../src/core/linked-abort.ts';
import { until } from '../support/until.ts';
import { Outbox, Receiver, type Answer } from './outbox-fixture.ts';

const report = { model_name: 'm', samples: { main: { llm_call_metrics: [{ logprobs: [-0.1] }] } } };

const times = (count: number, answer: Answer): Answer[] => Array<Answer>(count).fill(answer);

/** Whose callbacks came, in order. */
function idsOf({ posts }: Receiver): readonly string[] {
  return posts.map(({ body }) => (JSON.parse(body) as { readonly rollout_id: string }).rollout_id);
}

describe('the sender of callbacks', () => {
  test('posts the bytes of the store with bearer, key and content type, and records that they were taken', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox();
    const body = JSON.stringify({ ok: true, trajectory: report });
    receiver.script.set('/a%2Fb?x=%41', [{ status: 200, body }]);
    await outbox.send('r', { completion: receiver.url('/a%2Fb?x=%41') });
    await outbox.sender.settled('r');
    const [post] = receiver.posts;
    const delivery = await outbox.delivery('r');
    assert.equal(post?.path, '/a%2Fb?x=%41');
    assert.equal(post.body, delivery.body);
    const { authorization, 'idempotency-key': key, 'content-type': type } = post.headers;
    assert.deepEqual(
      [authorization, key, type, post.headers['user-agent']],
      ['Bearer of-the-controller', 'r/completion', 'application/json', 'slipway/test'],
    );
    assert.deepEqual([delivery.state, delivery.attempts], ['delivered', 1]);
    const stored = await outbox.store.rollout('r');
    assert.deepEqual(JSON.parse(stored?.controllerReport ?? ''), report);
    assert.deepEqual(
      outbox.ends.map(({ result }) => result),
      ['delivered'],
    );
  });

  test('without a key of the controller the login of the URL is sent, or nothing', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox();
    const [delivery] = await outbox.commit('r', {
      completion: `http://me:secret@${receiver.host}/login`,
    });
    outbox.sender.enqueue([{ ...delivery!, authorization: null }]);
    outbox.sender.enqueue([
      { ...delivery!, key: 'k', seq: 9, authorization: null, url: receiver.url('/none') },
    ]);
    await outbox.ended(2);
    const sent = new Map(receiver.posts.map(({ path, headers }) => [path, headers.authorization]));
    assert.deepEqual(
      [...sent].sort(),
      [
        ['/login', `Basic ${Buffer.from('me:secret').toString('base64')}`],
        ['/none', undefined],
      ].sort(),
    );
  });

  for (const status of [200, 201, 202, 204, 299])
    test(`${status} is taken`, async () => {
      await using receiver = await Receiver.start();
      await using outbox = new Outbox();
      receiver.script.set('/c', [{ status }]);
      await outbox.send('r', { completion: receiver.url('/c') });
      await outbox.sender.settled('r');
      assert.equal((await outbox.delivery('r')).state, 'delivered');
    });

  for (const status of [301, 307, 400, 401, 404, 409, 422, 501])
    test(`${status} is final: a dead letter after one attempt`, async () => {
      await using receiver = await Receiver.start();
      await using outbox = new Outbox();
      const headers = { location: receiver.url('/elsewhere') };
      const body = 'no: of-the-controller\n';
      receiver.script.set('/c', [{ status, headers, body }]);
      await outbox.send('r', { completion: receiver.url('/c') });
      await outbox.sender.settled('r');
      const { state, attempts, lastError } = await outbox.delivery('r');
      const expected = `answered ${status}: no: …`;
      assert.deepEqual([state, attempts, lastError], ['dead', 1, expected]);
      assert.deepEqual(receiver.paths(), ['/c']);
      assert.equal(outbox.ends[0]?.result, 'dead');
    });

  test('what a receiver says is cut between characters', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox();
    receiver.script.set('/c', [{ status: 400, body: `${'a'.repeat(199)}😀😀` }]);
    await outbox.send('r', { completion: receiver.url('/c') });
    await outbox.sender.settled('r');
    const { lastError } = await outbox.delivery('r');
    assert.equal(lastError, `answered 400: ${'a'.repeat(199)}`);
  });

  for (const answer of [429, 500, 502, 503, 504, 'reset'] as const)
    test(`${answer} is tried again, with the same key and bytes`, async () => {
      await using receiver = await Receiver.start();
      await using outbox = new Outbox();
      receiver.script.set('/c', [answer === 'reset' ? answer : { status: answer }]);
      await outbox.send('r', { completion: receiver.url('/c') });
      await outbox.pass(500);
      await outbox.ended(1);
      const [first, second] = receiver.posts;
      assert.equal(first?.body, second?.body);
      assert.equal(first?.headers['idempotency-key'], second?.headers['idempotency-key']);
      const { state, attempts } = await outbox.delivery('r');
      assert.deepEqual([state, attempts], ['delivered', 2]);
    });

  test('nobody listens: five attempts, then the place of the rollout is free and the attempts go on', async () => {
    await using outbox = new Outbox();
    const gone = await Receiver.start();
    const url = gone.url('/c');
    await gone[Symbol.asyncDispose]();
    await outbox.send('r', { completion: url });
    const settled = outbox.sender.settled('r');
    for (const ms of [500, 1_000, 2_000, 4_000]) await outbox.pass(ms);
    await settled;
    const { state, attempts, lastError } = await outbox.delivery('r');
    assert.deepEqual([state, attempts], ['pending', 5]);
    assert.match(lastError ?? '', /^not reached: .*ECONNREFUSED/);
    const activity = outbox.sender.activity('r');
    assert.equal(activity?.receiver, new URL(url).origin);
    assert.equal(activity.attempts, 5);
    for (const ms of [15_000, 30_000, 60_000, 120_000, 240_000, 300_000, 300_000])
      await outbox.pass(ms);
    assert.equal(outbox.ends.length, 0);
  });

  test('after a long pause the bytes come from the store, and are the same', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox();
    receiver.script.set('/c', times(6, { status: 503 }));
    await outbox.send('r', { completion: receiver.url('/c') });
    for (const ms of [500, 1_000, 2_000, 4_000, 15_000, 30_000]) await outbox.pass(ms);
    await outbox.ended(1);
    assert.equal(receiver.posts.length, 7);
    assert.equal(new Set(receiver.posts.map(({ body }) => body)).size, 1);
    assert.equal((await outbox.delivery('r')).attempts, 7);
  });

  test('a long body is not held while it waits, and goes out whole', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox();
    const [delivery] = await outbox.commit('r', { completion: receiver.url('/c') });
    assert.equal(entryOf({ ...delivery!, body: 'a'.repeat(1e6) }, outbox.clock.now()).body, null);
    outbox.sender.enqueue([{ ...delivery!, body: null }]);
    await outbox.ended(1);
    assert.equal(receiver.posts[0]?.body, delivery?.body);
  });

  test('a receiver that never answers is given up after ten seconds', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox();
    receiver.script.set('/c', ['silent']);
    await outbox.send('r', { completion: receiver.url('/c') });
    await until('the request', () => receiver.posts.length === 1);
    await outbox.pass(10_000);
    await outbox.pass(500);
    await outbox.ended(1);
    assert.match(outbox.log.join('\n'), /no answer within 10 s/);
  });

  test('Retry-After is obeyed, up to five minutes', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox();
    const refuse = (value: string) => ({ status: 429, headers: { 'retry-after': value } });
    receiver.script.set('/c', [refuse('7'), refuse('86400')]);
    await outbox.send('r', { completion: receiver.url('/c') });
    await outbox.pass(7_000);
    await outbox.pass(300_000);
    await outbox.ended(1);
  });

  test('too old is a dead letter, when a round of attempts is over; replayed it goes out with the same bytes', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox({ maxAgeMs: 20_000 });
    receiver.script.set('/c', times(6, { status: 500 }));
    await outbox.send('r', { completion: receiver.url('/c') });
    for (const ms of [500, 1_000, 2_000, 4_000, 15_000]) await outbox.pass(ms);
    await outbox.ended(1);
    assert.equal(outbox.ends[0]?.result, 'dead');
    const [dead] = await outbox.store.deadLetters({ limit: 10, afterSeq: 0 });
    assert.equal(dead?.key, 'r/completion');
    const replayed = await outbox.store.replay('r/completion');
    outbox.sender.enqueue([replayed!]);
    await outbox.ended(2);
    assert.equal((await outbox.delivery('r')).state, 'delivered');
    assert.equal(receiver.posts.length, 7);
    assert.equal(new Set(receiver.posts.map(({ body }) => body)).size, 1);
    assert.equal(new Set(receiver.posts.map(({ headers }) => headers['idempotency-key'])).size, 1);
  });

  const odd: readonly [string, string, RegExp | null][] = [
    ['no JSON', 'fine', null],
    ['no report', '{"ok":true}', null],
    ['a broken report', '{"trajectory":{"samples":7}}', /trajectory\.samples: /],
  ];
  for (const [what, body, warning] of odd)
    test(`an acknowledgement with ${what} is one all the same`, async () => {
      await using receiver = await Receiver.start();
      await using outbox = new Outbox();
      receiver.script.set('/c', [{ status: 200, body }]);
      await outbox.send('r', { completion: receiver.url('/c') });
      await outbox.ended(1);
      assert.equal((await outbox.delivery('r')).state, 'delivered');
      assert.equal((await outbox.store.rollout('r'))?.controllerReport, null);
      if (warning === null) assert.deepEqual(outbox.log, []);
      else assert.match(outbox.log.join(), warning);
    });

  test('the completion goes before the grader, however often it has to be tried', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox();
    receiver.script.set('/c', [{ status: 503 }, { status: 503 }]);
    await outbox.send('r', { completion: receiver.url('/c'), grader: receiver.url('/g') });
    await outbox.pass(500);
    await outbox.pass(1_000);
    await outbox.ended(2);
    assert.deepEqual(receiver.paths(), ['/c', '/c', '/c', '/g']);
  });

  test('a rollout is settled when both of its callbacks are', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox();
    receiver.script.set('/g', [{ status: 503 }]);
    await outbox.send('r', { completion: receiver.url('/c'), grader: receiver.url('/g') });
    let isSettled = false;
    const settled = outbox.sender.settled('r').then(() => (isSettled = true));
    await outbox.ended(1);
    await until('the grader is refused', () => outbox.clock.pauses.includes(500));
    assert.equal(isSettled, false);
    outbox.clock.advance(500);
    await settled;
    assert.equal((await outbox.delivery('r', 'grader')).state, 'delivered');
  });

  test('the grader does not wait for more than the first round of a completion', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox();
    receiver.script.set('/c', times(5, { status: 503 }));
    await outbox.send('r', { completion: receiver.url('/c'), grader: receiver.url('/g') });
    for (const ms of [500, 1_000, 2_000, 4_000]) await outbox.pass(ms);
    await outbox.ended(1);
    assert.deepEqual(receiver.paths(), ['/c', '/c', '/c', '/c', '/c', '/g']);
  });

  test('many callbacks to one URL arrive in the order of their creation', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox();
    receiver.script.set('/all', [{ status: 503 }]);
    const ids = Array.from({ length: 20 }, (_, index) => `r${index}`);
    for (const id of ids) await outbox.send(id, { completion: receiver.url('/all') });
    await outbox.pass(500);
    await outbox.ended(20);
    assert.deepEqual(idsOf(receiver), ['r0', ...ids]);
  });

  for (const [status, seen] of [
    [503, ['r0', 'r0', 'r0', 'r0', 'r0', 'r0', 'r1']],
    [500, ['r0', 'r0', 'r0', 'r0', 'r0', 'r1', 'r0']],
  ] as const)
    test(`at one URL, who got ${status} all round ${status === 500 ? 'steps aside' : 'holds the others'}`, async () => {
      await using receiver = await Receiver.start();
      await using outbox = new Outbox();
      receiver.script.set('/all', times(5, { status }));
      for (const id of ['r0', 'r1']) await outbox.send(id, { completion: receiver.url('/all') });
      const settled = outbox.sender.settled('r1');
      for (const ms of [500, 1_000, 2_000, 4_000]) await outbox.pass(ms);
      await settled;
      await outbox.pass(15_000);
      await outbox.ended(2);
      assert.deepEqual(idsOf(receiver), seen);
    });

  test('a dead letter that is replayed in the same moment goes out', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox();
    receiver.script.set('/c', [{ status: 410 }]);
    const deliveries = await outbox.commit('r', { completion: receiver.url('/c') });
    const stop = outbox.sender.onEnd(() => {
      stop();
      outbox.sender.enqueue(deliveries);
    });
    outbox.sender.enqueue(deliveries);
    await outbox.ended(2);
    assert.deepEqual(receiver.paths(), ['/c', '/c']);
  });

  test('what is under way already is not sent twice', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox();
    const deliveries = await outbox.commit('r', { completion: receiver.url('/c') });
    outbox.sender.enqueue([...deliveries, ...deliveries]);
    await outbox.sender.settled('r');
    await outbox.sender.close(never);
    assert.deepEqual(receiver.paths(), ['/c']);
  });

  test('a silent receiver with many rollouts does not hold up another', async () => {
    await using silent = await Receiver.start();
    await using receiver = await Receiver.start();
    await using outbox = new Outbox({ perReceiver: 4, overall: 6 });
    for (let index = 0; index < 40; index += 1) {
      silent.script.set(`/${index}`, times(9, 'silent'));
      await outbox.send(`s${index}`, { completion: silent.url(`/${index}`) });
    }
    for (let index = 0; index < 40; index += 1)
      await outbox.send(`r${index}`, { completion: receiver.url(`/${index}`) });
    await outbox.ended(40);
    assert.equal(silent.posts.length, 4);
    await outbox.pass(10_000);
    await until('one is tried', () => silent.posts.length === 5);
    assert.equal(outbox.clock.pauses.filter((ms) => ms === 10_000).length, 1);
  });

  test('the place of a rollout is free after a minute, whatever its callbacks wait for', async () => {
    await using silent = await Receiver.start();
    await using outbox = new Outbox({ perReceiver: 1 });
    for (const path of ['/a', '/b']) silent.script.set(path, ['silent']);
    await outbox.send('a', { completion: silent.url('/a') });
    await outbox.send('b', { completion: silent.url('/b') });
    await until('one is tried', () => silent.posts.length === 1);
    const settled = outbox.sender.settled('b');
    outbox.clock.advance(60_000);
    await settled;
    await outbox.sender.settled('never heard of');
  });

  test('withdrawn deliveries are not sent; one on the wire is cut off', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox();
    receiver.script.set('/a', ['silent']);
    receiver.script.set('/b', [{ status: 503 }]);
    await outbox.send('a', { completion: receiver.url('/a'), grader: receiver.url('/a2') });
    await outbox.send('b', { completion: receiver.url('/b') });
    await until('the pause of one', () => outbox.clock.pauses.includes(500));
    await until('the other is on the wire', () => receiver.paths().includes('/a'));
    await Promise.all([outbox.sender.withdraw('a'), outbox.sender.withdraw('b')]);
    outbox.clock.advance(500);
    await until('the connection is gone', () => receiver.connections <= 1);
    assert.deepEqual([...receiver.paths()].sort(), ['/a', '/b']);
    assert.deepEqual(
      outbox.ends.map(({ result }) => result),
      ['withdrawn', 'withdrawn', 'withdrawn'],
    );
    assert.equal(outbox.sender.activity('a'), null);
    assert.deepEqual(outbox.clock.pauses, []);
  });

  test('closing waits for what is on the wire, and leaves the rest pending', async () => {
    await using receiver = await Receiver.start();
    const outbox = new Outbox();
    receiver.script.set('/slow', ['silent']);
    receiver.script.set('/b', [{ status: 503 }]);
    await outbox.send('a', { completion: receiver.url('/slow'), grader: receiver.url('/g') });
    await outbox.send('b', { completion: receiver.url('/b') });
    await until('the pause of one', () => outbox.clock.pauses.includes(500));
    await until('the other is on the wire', () => receiver.paths().includes('/slow'));
    const force = new AbortController();
    let isClosed = false;
    const closed = outbox.sender.close(force.signal).then(() => (isClosed = true));
    await until('the pause has ended', () => !outbox.clock.pauses.includes(500));
    assert.equal(isClosed, false);
    force.abort(new Error('no more time'));
    await Promise.all([closed, outbox.sender.close(never)]);
    const states = [await outbox.delivery('a'), await outbox.delivery('a', 'grader')];
    assert.deepEqual(
      [...states, await outbox.delivery('b')].map(({ state }) => state),
      ['pending', 'pending', 'pending'],
    );
    outbox.sender.enqueue([await outbox.delivery('b')]);
    assert.equal(receiver.posts.length, 2);
    assert.deepEqual(outbox.clock.pauses, []);
  });

  test('closing lets an attempt on the wire end, and records it', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox();
    await outbox.send('a', { completion: receiver.url('/c') });
    await until('it is on the wire', () => receiver.posts.length === 1);
    await outbox.sender.close(never);
    assert.equal((await outbox.delivery('a')).state, 'delivered');
  });

  test('closing lets first attempts go out, in order, and sends nothing again', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox({ perReceiver: 1 });
    receiver.script.set('/b', [{ status: 503 }]);
    for (const id of ['a', 'b'])
      await outbox.send(id, { completion: receiver.url(`/${id}`), grader: receiver.url('/g') });
    await outbox.sender.close(never);
    assert.deepEqual([...receiver.paths()].sort(), ['/a', '/b', '/g']);
    const left = [await outbox.delivery('b'), await outbox.delivery('b', 'grader')];
    assert.deepEqual(
      left.map(({ state, attempts }) => [state, attempts]),
      [
        ['pending', 1],
        ['pending', 0],
      ],
    );
    assert.equal((await outbox.delivery('a', 'grader')).state, 'delivered');
  });

  const refused: readonly [string, string][] = [
    ['names a private address', 'http://127.0.0.1:1/c?token=x'],
    ['is not an http or https URL', 'ftp://h/c'],
  ];
  for (const [problem, url] of refused)
    test(`a URL that ${problem} is a dead letter at once, where that is denied`, async () => {
      await using outbox = new Outbox({ policy: { privateAddresses: 'deny' } });
      await outbox.send('r', { completion: url });
      await outbox.ended(1);
      const { state, lastError } = await outbox.delivery('r');
      assert.equal(state, 'dead');
      assert.match(lastError ?? '', new RegExp(`its URL ${problem}`));
      assert.doesNotMatch(`${lastError} ${outbox.log.join()}`, /token=x/);
    });

  for (const privateAddresses of ['deny', 'allow'] as const)
    test(`a name that comes to mean this host is found when the connection is made: ${privateAddresses}`, async () => {
      await using receiver = await Receiver.start();
      await using outbox = new Outbox({
        policy: { privateAddresses },
        lookup: (_name, _options, callback) =>
          callback(null, [{ address: '127.0.0.1', family: 4 }]),
      });
      const { port } = new URL(receiver.url('/'));
      await outbox.send('r', { completion: `http://controller.example:${port}/c` });
      await outbox.ended(1);
      const { state, lastError } = await outbox.delivery('r');
      assert.equal(state, privateAddresses === 'deny' ? 'dead' : 'delivered');
      assert.equal(receiver.posts.length, privateAddresses === 'deny' ? 0 : 1);
      if (privateAddresses === 'deny') assert.match(lastError ?? '', /resolves to a private one/);
    });

  test('an authorisation that no header can carry is a dead letter', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox();
    const [delivery] = await outbox.commit('r', { completion: receiver.url('/c') });
    outbox.sender.enqueue([{ ...delivery!, authorization: 'Bearer a\nb' }]);
    await outbox.ended(1);
    assert.equal((await outbox.delivery('r')).state, 'dead');
  });

  test('a callback that was taken is not sent again while the store cannot write it', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox();
    const delivered = outbox.store.delivered.bind(outbox.store);
    let failures = 2;
    outbox.store.delivered = async (...call) => {
      if (failures-- > 0) throw new Error('no space left');
      await delivered(...call);
    };
    await outbox.send('r', { completion: receiver.url('/c') });
    await outbox.pass(1_000);
    await outbox.pass(1_000);
    await outbox.ended(1);
    assert.equal(receiver.posts.length, 1);
    assert.equal((await outbox.delivery('r')).state, 'delivered');
  });

  test('a listener that throws breaks nothing', async () => {
    await using receiver = await Receiver.start();
    await using outbox = new Outbox();
    const stop = outbox.sender.onEnd(() => {
      throw new Error('broken');
    });
    await outbox.send('a', { completion: receiver.url('/a') });
    await outbox.sender.settled('a');
    stop();
    assert.equal((await outbox.delivery('a')).state, 'delivered');
    assert.match(outbox.log.join(), /a listener failed/);
  });
});
