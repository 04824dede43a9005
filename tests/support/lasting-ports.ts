import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/** Below those that Linux gives to whoever asks for any, connections included (32768 and up, unless it is told otherwise). */
const range = { from: 20_000, to: 32_000 };
const tries = 100;

/** The first of so many ports in a row on which nobody listens, and which are still free for who listens there again after its end. */
export async function lastingPorts(count: number): Promise<number> {
  for (let tried = 0; tried < tries; tried += 1) {
    const first = randomInt(range.from, range.to - count);
    const isFree = await Promise.all(
      Array.from({ length: count }, (_, index) => canListen(first + index)),
    );
    if (isFree.every(Boolean)) return first;
  }
  throw new Error(`no ${count} free ports in a row below ${range.to}`);
}

async function canListen(port: number): Promise<boolean> {
  const server = createServer();
  try {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    server.close();
    await once(server, 'close');
    return true;
  } catch {
    return false;
  }
}
