/** A process with the least that could answer a durable `POST /rollout`: node's own HTTP server before one table. Prints its address. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { BareGroups } from './bare.ts';

const groups = new BareGroups(process.argv[2] ?? '');
const server = createServer((request, response) => {
  const pieces: Buffer[] = [];
  request.on('data', (piece: Buffer) => pieces.push(piece));
  request.on('end', () => {
    const body = Buffer.concat(pieces).toString();
    const { rollout_id: id } = JSON.parse(body) as { rollout_id: string };
    void groups.insert(id, body).then(() => {
      response.writeHead(202, { 'content-type': 'application/json' }).end('{}');
    });
  });
});
server.listen(0, '127.0.0.1', () => {
  console.log(
    JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }),
  );
});
