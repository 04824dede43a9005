/** Ways in which a registry fails. */
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

/** What happens to the next requests whose path contains `path`. */
export interface Fault {
  readonly path: string;
  readonly times: number;
  readonly how:
    | { readonly kind: 'status'; readonly status: number; readonly code?: string }
    | { readonly kind: 'reset' }
    | { readonly kind: 'silent'; readonly ms: number }
    /** Half of the body, then the connection breaks. */
    | { readonly kind: 'truncated' }
    /** Half of the body, then nothing for a while. */
    | { readonly kind: 'stalled'; readonly ms: number }
    | { readonly kind: 'body'; readonly body: Buffer };
}

/** Whether the fault answered the request by itself. */
export async function inject(how: Fault['how'], response: ServerResponse): Promise<boolean> {
  switch (how.kind) {
    case 'status':
      send(response, how.status, { code: how.code ?? null, message: 'injected', hint: null });
      return true;
    case 'reset':
      response.socket?.destroy();
      return true;
    case 'silent':
      await delay(how.ms, undefined, { ref: false });
      return false;
    case 'body':
      response.writeHead(200).end(how.body);
      return true;
    case 'truncated':
    case 'stalled':
      return false;
  }
}

/** Half of a good body, then the connection breaks: at once or after a while. */
export async function sendHalf(
  fault: Extract<Fault['how'], { kind: 'truncated' | 'stalled' }>,
  body: string | Buffer,
  response: ServerResponse,
): Promise<void> {
  const bytes = Buffer.isBuffer(body) ? body : Buffer.from(body);
  response.writeHead(200, { 'content-length': bytes.length });
  const written = promisify((done: () => void) =>
    response.write(bytes.subarray(0, Math.floor(bytes.length / 2)), done),
  );
  await written();
  if (fault.kind === 'stalled') await delay(fault.ms, undefined, { ref: false });
  response.socket?.destroy();
}

export function send(response: ServerResponse, status: number, document: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(document));
}
