/** Passes an event stream on, but for one event: the broken stream of a control. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { request } from 'undici';

export interface SkippingProxy extends AsyncDisposable {
  readonly url: string;
}

/** The event with the cursor `skipped` does not come through. */
export async function skippingProxy(
  upstream: () => string,
  skipped: number,
): Promise<SkippingProxy> {
  const server = createServer((incoming, response) => {
    void (async () => {
      const after = incoming.headers['last-event-id'];
      const answer = await request(upstream(), {
        headers: {
          accept: 'text/event-stream',
          ...(typeof after === 'string' ? { 'last-event-id': after } : {}),
        },
        bodyTimeout: 0,
      });
      response.once('close', () => answer.body.destroy());
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      let rest = '';
      for await (const chunk of answer.body as AsyncIterable<Buffer>) {
        const frames = (rest + chunk.toString()).split('\n\n');
        rest = frames.pop() ?? '';
        for (const frame of frames)
          if (!frame.startsWith(`id: ${skipped}\n`)) response.write(`${frame}\n\n`);
      }
    })().catch(() => response.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
