import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type AddressInfo } from 'node:net';
import { it } from 'node:test';
import { EndpointForwarder } from '../../../src/environments/shared/endpoint-forwarder.ts';
import { sandboxAddress } from '../../../src/wire/sandbox-address.ts';

it('comes to an endpoint on loopback from the address of sandboxes', async () => {
  const server = createServer((socket) => socket.end(socket.remoteAddress ?? ''));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port: own } = server.address() as AddressInfo;
  const forwarder = new EndpointForwarder({ host: '127.0.0.1', port: own });
  const { port } = await forwarder.listen({ host: '127.0.0.1', port: 0 });
  const client = connect({ host: '127.0.0.1', port: port! });
  let seen = '';
  client.on('data', (chunk: Buffer) => (seen += chunk.toString()));
  await once(client, 'close');
  assert.equal(seen, sandboxAddress);
  await forwarder.close();
  server.close();
});

it('joins a connection to the endpoint with half-closes kept, and ends it on close', async () => {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let seen = '';
    socket.on('data', (chunk: Buffer) => (seen += chunk.toString()));
    socket.on('end', () => socket.end(`seen ${seen}`));
    socket.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const forwarder = new EndpointForwarder({
    host: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
  });
  const { port } = await forwarder.listen({ host: '127.0.0.1', port: 0 });
  const client = connect({ host: '127.0.0.1', port: port!, allowHalfOpen: true });
  client.end('ping');
  let answer = '';
  client.on('data', (chunk: Buffer) => (answer += chunk.toString()));
  await once(client, 'end');
  assert.equal(answer, 'seen ping');
  const held = connect({ host: '127.0.0.1', port: port! });
  held.on('error', () => undefined);
  await once(held, 'connect');
  const closed = once(held, 'close');
  await forwarder.close();
  await closed;
  server.close();
});
