/**
 * Asks a client of the agent server how it is. Who that is a request has said: it goes only where the rules for addresses let calls go, also when its name has come to
 * mean another address, it is led nowhere else, and what it says is read up to a size.
 */
import type { LookupFunction } from 'node:net';
import { Agent, fetch, type Response } from 'undici';
import type { ProbeHealth } from '../../agent-server/heartbeats.ts';
import { LinkedAbort } from '../../core/linked-abort.ts';
import type { UrlPolicy } from '../../wire/url-policy.ts';
import { resolveHost } from './resolve-host.ts';

const maxBytes = 65_536;

export interface HealthProbeOptions {
  /** Of the whole answer, the look-up of its name among it. */
  readonly timeoutMs: number;
  readonly policy: Pick<UrlPolicy, 'guard'>;
  readonly lookup: LookupFunction;
}

/** Always plain http, as the trainer's session servers speak it. */
export function healthProbe({ timeoutMs, policy, lookup: find }: HealthProbeOptions): ProbeHealth {
  const lookup = policy.guard(find);
  // No connection outlives its question.
  const dispatcher = new Agent({ pipelining: 0, connect: { lookup } });
  return async (target, { wantsInstance, signal }) => {
    using limit = new LinkedAbort([signal], {
      ms: timeoutMs,
      reason: () => new Error(`no answer within ${timeoutMs / 1000} s`),
    });
    // An address that is written out is looked at as well: a connection asks nobody about it.
    const host = new URL(`http://${target}`).hostname.replace(/^\[(.*)\]$/, '$1');
    await resolveHost(host, { lookup, ms: timeoutMs, signal: limit.signal });
    const answer = await fetch(`http://${target}/health`, {
      ...{ signal: limit.signal, redirect: 'manual', dispatcher },
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
