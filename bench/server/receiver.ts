/** A process that takes callbacks: it answers at once and prints how many came when it is asked (`GET /count`). Prints its address. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

let graded = 0;
const server = createServer((request, response) => {
  if (request.url === '/count') {
    response.end(String(graded));
    return;
  }
  if (request.url?.endsWith('/grader') === true) graded += 1;
  request.resume();
  request.on('end', () => {
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
});
server.listen(0, '127.0.0.1', () => {
  console.log(
    JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }),
  );
});
