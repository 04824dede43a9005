/**
 * A process that answers chat completions: whole ones at once, streams as evenly spaced events that carry the moment they were written. Arguments: how many
 * events, and how many milliseconds from one to the next.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export const eventsPerStream = 50;
export const eventEveryMs = 100;
/** About what one token with its log-probability takes. */
const padding = 'x'.repeat(200);
const whole = JSON.stringify({
  choices: [{ index: 0, message: { role: 'assistant', content: 'y'.repeat(2_000) } }],
});

if (import.meta.main) {
  const [events = eventsPerStream, everyMs = eventEveryMs] = process.argv.slice(2).map(Number);
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      const { stream } = JSON.parse(Buffer.concat(pieces).toString()) as { stream?: boolean };
      if (stream !== true) {
        response.writeHead(200, { 'content-type': 'application/json' }).end(whole);
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      let sent = 0;
      const timer = setInterval(() => {
        const document = JSON.stringify({ at: String(process.hrtime.bigint()), padding });
        response.write(`data: ${document}\n\n`);
        sent += 1;
        if (sent < events) return;
        clearInterval(timer);
        response.end('data: [DONE]\n\n');
      }, everyMs);
      response.on('close', () => clearInterval(timer));
    });
  });
  server.listen({ host: '127.0.0.1', port: 0, backlog: 4_096 }, () => {
    console.log(
      JSON.stringify({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }),
    );
  });
}
