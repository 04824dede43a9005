/**
 * A process that streams chat completions as evenly spaced events, cheaply for a thousand of them: streams share the timers of a few slots, and those of a slot
 * share their bytes. Each event says when it was written. Arguments: events of a stream, milliseconds from one to the next. A line on stdin is answered with
 * how many streams are open.
 */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const slots = 16;
/** About what one token with its log-probability takes. */
const padding = 'x'.repeat(160);

interface Stream {
  readonly response: ServerResponse;
  left: number;
}

const [events = 150, everyMs = 200] = process.argv.slice(2).map(Number);
const open = Array.from({ length: slots }, () => new Set<Stream>());
let next = 0;

function chunk(delta: object, finish: string | null): string {
  const choices = [{ index: 0, delta, finish_reason: finish }];
  return `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm', choices })}\n\n`;
}

const last = Buffer.from(`${chunk({}, 'stop')}data: [DONE]\n\n`);

function tick(streams: Set<Stream>): void {
  const at = String(process.hrtime.bigint());
  const bytes = Buffer.from(chunk({ content: `${padding} ${at} ` }, null));
  for (const stream of streams) {
    stream.left -= 1;
    if (stream.left > 0) stream.response.write(bytes);
    else {
      streams.delete(stream);
      stream.response.end(last);
    }
  }
}

open.forEach((streams, slot) =>
  setTimeout(() => setInterval(() => tick(streams), everyMs), (slot * everyMs) / slots),
);

const server = createServer((request, response) => {
  request.resume();
  request.on('end', () => {
    const streams = open[next % slots];
    next += 1;
    const stream = { response, left: events };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
    response.on('close', () => streams?.delete(stream));
    streams?.add(stream);
  });
});
server.listen({ host: '127.0.0.1', port: 0, backlog: 4_096 }, () => {
  console.log(
    JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }),
  );
});
process.stdin.on('data', () =>
  console.log(JSON.stringify({ open: open.reduce((sum, { size }) => sum + size, 0) })),
);
