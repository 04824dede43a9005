import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:net';
import { test } from 'node:test';
import { RunEngines } from '../../src/app/run-engines.ts';
import { isRolloutError } from '../../src/core/errors.ts';
import { LinkedAbort, never } from '../../src/core/linked-abort.ts';
import type { Engine, EngineOpener } from '../../src/engines/engine.ts';

/** Opens engines that count how often each was closed and destroyed. */
class CountingOpener {
  closed = 0;
  destroyed = 0;
  readonly open: EngineOpener = (options) =>
    Promise.resolve({
      kind: options.kind,
      url: options.baseUrl,
      close: () => Promise.resolve(void (this.closed += 1)),
      destroy: () => Promise.resolve(void (this.destroyed += 1)),
    } as unknown as Engine);
}

async function listening(): Promise<{ server: Server; url: string; connections: () => number }> {
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.on('error', () => undefined).resume();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  return { server, url: `http://127.0.0.1:${address.port}/v1`, connections: () => connections };
}

const options = (baseUrl: string) => ({ kind: 'chat', baseUrl, apiKey: null }) as const;

test('an address is knocked at once however many open it at a time, and trusted afterwards', async () => {
  const { server, url, connections } = await listening();
  await using engines = new RunEngines(new CountingOpener().open, never);
  await Promise.all(Array.from({ length: 20 }, () => engines.open(options(url))));
  server.close();
  await once(server, 'close');
  assert.equal(connections(), 1);
  await engines.open(options(url));
  assert.equal(engines.openCount, 21);
});

test('an address where nothing listens is refused with its origin and a remedy, and the engine is closed', async () => {
  const { server, url } = await listening();
  server.close();
  await once(server, 'close');
  const opener = new CountingOpener();
  await using engines = new RunEngines(opener.open, never);
  const withSecret = url.replace('http://', 'http://user:secret@');
  await assert.rejects(engines.open(options(withSecret)), (error: unknown) => {
    assert.ok(isRolloutError(error, 'ENGINE_UNAVAILABLE'));
    assert.ok(error.message.includes(new URL(url).origin), error.message);
    assert.match(error.remedy ?? '', /api_base/);
    assert.doesNotMatch(error.describe(), /secret/);
    return true;
  });
  assert.deepEqual([opener.closed, engines.openCount], [1, 0]);
});

test('the end of the run ends the knocking', async () => {
  const { server, url } = await listening();
  using run = new LinkedAbort([]);
  run.abort(new Error('interrupted'));
  await using engines = new RunEngines(new CountingOpener().open, run.signal);
  await assert.rejects(engines.open(options(url)), /interrupted/);
  server.close();
});

test('an engine that was closed is forgotten; one that was left open is destroyed with the run', async () => {
  const { server, url } = await listening();
  const opener = new CountingOpener();
  {
    await using engines = new RunEngines(opener.open, never);
    const first = await engines.open(options(url));
    await engines.open(options(url));
    await first.close();
    assert.equal(engines.openCount, 1);
  }
  assert.deepEqual([opener.closed, opener.destroyed], [1, 1]);
  server.close();
});
