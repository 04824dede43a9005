/**
 * A process that answers chat completions: whole ones at once, streams as evenly spaced events that carry the moment they were written, each one token with its id
 * and its log-probability, as vLLM tells them. Arguments: how many events, and how many milliseconds from one to the next.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

export const eventsPerStream = 50;
export const eventEveryMs = 100;
const whole = JSON.stringify({
  choices: [{ index: 0, message: { role: 'assistant', content: 'y'.repeat(2_000) } }],
});

function chunk(content: string, finish: string | null): object {
  const logprob = { token: content, logprob: -0.123456789, bytes: null, top_logprobs: [] };
  return {
    ...{ id: 'chatcmpl-bench', object: 'chat.completion.chunk', created: 0, model: 'm' },
    choices: [
      {
        ...{ index: 0, delta: { content }, finish_reason: finish },
        ...(finish === null && { logprobs: { content: [logprob] }, token_ids: [50_256] }),
      },
    ],
  };
}

if (import.meta.main) {
  const [events = eventsPerStream, everyMs = eventEveryMs] = process.argv.slice(2).map(Number);
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.on('end', () => {
      // Programs look whether anybody is there, and send nothing.
      const body = Buffer.concat(pieces).toString() || '{}';
      const { stream } = JSON.parse(body) as { stream?: boolean };
      if (stream !== true) {
        response.writeHead(200, { 'content-type': 'application/json' }).end(whole);
        return;
      }
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      let sent = 0;
      const timer = setInterval(() => {
        response.write(
          `data: ${JSON.stringify(chunk(`at=${process.hrtime.bigint()} `, null))}\n\n`,
        );
        sent += 1;
        if (sent < events) return;
        clearInterval(timer);
        response.end(`data: ${JSON.stringify(chunk('', 'stop'))}\n\ndata: [DONE]\n\n`);
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
