import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, it } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { followOverReconnects } from '../chaos/event-reconnects.ts';
import { FakeRolloutService } from '../fakes/fake-rollout-service.ts';
import { readStream, type ReadEvent } from '../support/event-reader.ts';
import { bearer, blueKey, Serving, threeKeys } from './serving.ts';

const generous = 30_000;

async function listening(serving: Serving): Promise<string> {
  return `${await serving.app.listen({ host: '127.0.0.1', port: 0 })}/api/v1/events`;
}

function note(
  service: FakeRolloutService,
  count: number,
  tenant = 'blue',
  size = 0,
): Promise<void> {
  const event = {
    ...{ rolloutId: 'r1', tenant, type: 'rollout:stage', at: service.now },
    payload: { text: 'x'.repeat(size) },
  };
  return service.store.note(Array.from({ length: count }, () => event));
}

/** The first `count` events or notices. */
async function take(url: string, count: number, after: number | null, headers = {}) {
  const events: ReadEvent[] = [];
  await readStream({
    ...{ url, after, headers, signal: AbortSignal.timeout(generous) },
    onEvent: (event) => events.push(event) < count,
  });
  return events;
}

describe('the event stream', () => {
  it('gives what there is, then what comes, and resumes behind the last id', async () => {
    await using serving = new Serving();
    const url = await listening(serving);
    await note(serving.service, 2);
    const events: ReadEvent[] = [];
    await readStream({
      ...{ url, after: null, signal: AbortSignal.timeout(generous) },
      onEvent(event) {
        if (events.push(event) === 2) void note(serving.service, 3);
        return events.length < 5;
      },
    });
    assert.deepEqual(
      events.map(({ id, type, data }) => [id, type, data['cursor']]),
      [1, 2, 3, 4, 5].map((cursor) => [cursor, 'rollout:stage', cursor]),
    );
    assert.deepEqual(
      (await take(url, 2, 3)).map(({ id }) => id),
      [4, 5],
    );
    assert.deepEqual(
      (await take(`${url}?after=2`, 1, null)).map(({ id }) => id),
      [3],
    );
    assert.deepEqual(
      (await take(`${url}?after=2`, 1, 4)).map(({ id }) => id),
      [5],
    );
    const head = await serving.ask({
      ...{ method: 'HEAD', url: '/api/v1/events', headers: { accept: 'text/event-stream' } },
    });
    assert.equal(head.statusCode, 200);
  });

  it('says when events behind the cursor are gone, and when the cursor is from elsewhere', async () => {
    await using serving = new Serving();
    const { service } = serving;
    const url = await listening(serving);
    await note(service, 5);
    await service.store.prune({ maxAgeMs: 0, maxEnded: 0 }, new Date(service.now.getTime() + 1));
    await note(service, 1);
    const [gap, event] = await take(url, 2, 2);
    assert.deepEqual(
      [gap?.type, gap?.data, event?.id],
      ['gap', { reason: 'dropped', after: 2, oldest: 6, newest: 6 }, 6],
    );
    const [ahead] = await take(url, 1, 99);
    assert.deepEqual(ahead?.data, { reason: 'ahead', after: 99, oldest: 6, newest: 6 });
  });

  it('gives signs of life that move the cursor past what the reader may not see', async () => {
    await using serving = new Serving({ keys: threeKeys, limits: { keepAliveMs: 5 } });
    const url = await listening(serving);
    await note(serving.service, 1, 'blue');
    await note(serving.service, 7, 'green');
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.setEncoding('utf8').setTimeout(generous, () => socket.destroy());
    socket.write(
      `GET /k/${blueKey}/api/v1/events HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\n\r\n`,
    );
    let text = '';
    for await (const chunk of socket as AsyncIterable<string>) {
      text += chunk;
      if (text.includes(': nothing new\nid: 8\n\n')) break;
    }
    assert.match(text, /id: 1\nevent: rollout:stage\ndata: \{"cursor":1,/);
    assert.match(text, /: nothing new\nid: 8\n\n/);
    assert.doesNotMatch(text, /green/);
  });

  it('keeps nothing for a reader that takes nothing, and lets it go', async () => {
    await using serving = new Serving({ limits: { slowReaderMs: 50 } });
    const { service } = serving;
    const pages: number[] = [];
    const events = service.events.bind(service);
    service.events = (options, caller) => {
      pages.push(options.after);
      return events(options, caller);
    };
    const url = await listening(serving);
    // Ten times more than what the sockets of both sides hold.
    await note(service, 8_000, 'blue', 10_000);
    const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1' });
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    socket.pause();
    socket.write(
      'GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n',
    );
    const deadline = Date.now() + generous;
    const open = () =>
      new Promise<number>((resolve) =>
        serving.app.server.getConnections((_, count) => resolve(count)),
      );
    while (pages.length === 0 || (await open()) > 0) {
      assert.ok(Date.now() < deadline, 'the reader was let go');
      await nextTurn();
    }
    assert.ok(pages.length < 20, `${pages.length} pages of 40 were read`);
    socket.destroy();
  });

  it('ends with the server, and takes no more readers than it may', async () => {
    const serving = new Serving({ keys: threeKeys, limits: { maxStreams: 1 } });
    const url = await listening(serving);
    await note(serving.service, 1);
    const ended = readStream({
      ...{ url, after: null, headers: bearer(blueKey), signal: AbortSignal.timeout(generous) },
      onEvent() {
        void refused();
        return true;
      },
    });
    const refused = async () => {
      await assert.rejects(take(url, 1, null, bearer(blueKey)), /answered 429/);
      await serving.app.close();
    };
    await ended;
  });
});

describe('100 reconnects', () => {
  const follow = async (service: FakeRolloutService, newest?: number) => {
    await using serving = new Serving({ service, limits: { keepAliveMs: 100 } });
    const url = await listening(serving);
    return await followOverReconnects({
      ...{
        url: () => url,
        reconnects: 100,
        seed: 7,
        cutBytes: 600,
        signal: AbortSignal.timeout(generous),
      },
      makeEvents: () => note(service, 5),
      newest: async () =>
        newest ?? (await service.events({ after: 0, limit: 1 }, { tenant: null })).newest,
    });
  };

  it('lose nothing, double nothing and keep the order', async () => {
    const report = await follow(new FakeRolloutService());
    assert.deepEqual(report.problems, []);
    assert.deepEqual([report.connections, report.seen.length, report.newest], [101, 500, 500]);
  });

  it('double nothing when the newest was looked at before the page', async () => {
    const service = new FakeRolloutService();
    const events = service.events.bind(service);
    service.events = async (options, caller) => {
      const page = await events(options, caller);
      return { ...page, newest: Math.max(0, page.newest - 2) };
    };
    const { problems } = await follow(service, 500);
    assert.deepEqual(problems, []);
  });

  const controls: readonly (readonly [string, (cursor: number) => readonly number[]])[] = [
    ['skips one', (cursor) => (cursor === 250 ? [] : [cursor])],
    ['doubles one', (cursor) => (cursor === 250 ? [cursor, cursor] : [cursor])],
  ];
  for (const [what, change] of controls)
    it(`show a stream that ${what}`, async () => {
      const service = new FakeRolloutService();
      const events = service.events.bind(service);
      service.events = async (options, caller) => {
        const page = await events(options, caller);
        const changed = page.events.flatMap((event) => change(event.cursor).map(() => event));
        return { ...page, events: changed };
      };
      const report = await follow(service);
      assert.notDeepEqual(report.problems, []);
    });
});
