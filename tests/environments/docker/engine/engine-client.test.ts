import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { isRolloutError } from '../../../../src/core/errors.ts';
import { LinkedAbort, never } from '../../../../src/core/linked-abort.ts';
import { EngineClient } from '../../../../src/environments/docker/engine/engine-client.ts';
import { parseEngineEndpoint } from '../../../../src/environments/docker/engine/engine-endpoint.ts';
import { EngineError } from '../../../../src/environments/docker/engine/engine-error.ts';

let folder = '';
let server: Server;
let engine: EngineClient;

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'slipway-engine-'));
  server = createServer((request, response) => {
    if (request.url === '/_ping') response.setHeader('Api-Version', '1.41').end('OK');
    else if (request.url?.includes('/silent')) return;
    else if (request.url?.includes('/refused'))
      response.writeHead(409).end(JSON.stringify({ message: 'it is in use' }));
    else response.end(JSON.stringify({ path: request.url, method: request.method }));
  });
  server.on('upgrade', (_request, socket) => {
    socket.write('HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nhello');
    socket.on('data', (chunk) => socket.end(chunk));
    socket.on('error', () => undefined);
  });
  server.listen(join(folder, 'engine.sock'));
  await once(server, 'listening');
  engine = new EngineClient(parseEngineEndpoint(`unix://${folder}/engine.sock`, null));
  await engine.negotiate(never);
});
after(async () => {
  engine.close();
  server.closeAllConnections();
  server.close();
  await rm(folder, { recursive: true });
});

test('calls carry the version agreed on, and a query without unset fields', async () => {
  const query = { a: 'x y', b: undefined, c: 1 };
  const answer = await engine.json({ method: 'POST', path: '/thing', query, signal: never });
  assert.deepEqual(answer, { path: '/v1.41/thing?a=x+y&c=1', method: 'POST' });
});

test('a refusal is an EngineError with the message of the engine', async () => {
  await assert.rejects(
    engine.json({ method: 'GET', path: '/refused', signal: never }),
    (error) =>
      error instanceof EngineError && error.status === 409 && error.message === 'it is in use',
  );
});

test('a call ends with the reason of its signal, and with a typed error at its own limit', async () => {
  const link = new LinkedAbort([]);
  const call = engine.json({ method: 'GET', path: '/silent', signal: link.signal });
  const reason = new Error('enough');
  link.abort(reason);
  await assert.rejects(call, reason);
  await assert.rejects(
    engine.json({ method: 'GET', path: '/silent', signal: never, timeoutMs: 20 }),
    (error) => isRolloutError(error, 'ENVIRONMENT_UNAVAILABLE'),
  );
});

test('an upgraded connection carries bytes both ways, those sent with the answer too', async () => {
  const socket = await engine.upgrade({ method: 'POST', path: '/exec/1/start', signal: never });
  let seen = '';
  socket.on('data', (chunk: Buffer) => (seen += chunk.toString()));
  socket.write(' world');
  await once(socket, 'end');
  assert.equal(seen, 'hello world');
  socket.destroy();
});

test('an address that needs another program is refused with a remedy', () => {
  for (const host of ['ssh://box', 'npipe:////./pipe/docker', 'unix://relative', 'nonsense'])
    assert.throws(
      () => parseEngineEndpoint(host, null),
      (error) => isRolloutError(error, 'CONFIG_INVALID') && error.remedy !== null,
    );
  assert.deepEqual(parseEngineEndpoint('tcp://10.0.0.1:2375', null), {
    kind: 'tcp',
    host: '10.0.0.1',
    port: 2375,
    tls: null,
  });
});
