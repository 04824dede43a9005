/** Asks a client of the agent server how it is. Who that is a request has said: it is led nowhere else, and what it says is read up to a size. */
import type { ProbeHealth } from '../../agent-server/heartbeats.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';

const maxBytes = 65_536;

/** Always plain http, as the trainer's session servers speak it. */
export function healthProbe(timeoutMs: number): ProbeHealth {
  return async (target, { wantsInstance, signal }) => {
    using limit = new LinkedAbort([signal], {
      ms: timeoutMs,
      reason: () => new Error(`no answer within ${timeoutMs / 1000} s`),
    });
    const answer = await fetch(`http://${target}/health`, {
      ...{ signal: limit.signal, redirect: 'manual' },
    });
    if (answer.status !== 200) {
      await answer.body?.cancel();
      throw new Error(`it answers with status ${answer.status}`);
    }
    const text = await textOf(answer);
    if (!wantsInstance) return null;
    const body: unknown = JSON.parse(text);
    const id: unknown =
      typeof body === 'object' && body !== null && 'session_server_instance_id' in body
        ? body.session_server_instance_id
        : null;
    return typeof id === 'string' ? id : null;
  };
}

async function textOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  if (body === null) return '';
  for await (const chunk of body as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes) throw new Error(`its answer is longer than ${maxBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
