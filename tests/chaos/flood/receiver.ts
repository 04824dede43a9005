/** A thread that takes callbacks and passes on which came when. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { parentPort } from 'node:worker_threads';
import type { ReceiverNews } from './flood.ts';

const tell = (news: ReceiverNews): void => parentPort?.postMessage(news);
const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => {
    const [, channel = '', id = ''] = (request.url ?? '').split('/');
    tell({ channel, id: decodeURIComponent(id), atMs: performance.timeOrigin + performance.now() });
    response.end('{}');
  });
});
server.keepAliveTimeout = 60_000;
server.listen(0, '127.0.0.1', () => {
  tell({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
});
