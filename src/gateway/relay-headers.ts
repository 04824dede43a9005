/**
 * Which headers go through. Upstream learns nothing of our key and nothing that concerns one connection only; the agent gets no cookie and no header
 * that names the upstream's key.
 */

import { hopByHopHeaders } from '../wire/hop-by-hop-headers.ts';

/** Those of one connection, and those that the relay sets itself. */
const notUpstream = new Set([
  ...hopByHopHeaders,
  'host',
  'authorization',
  'x-api-key',
  'api-key',
  'cookie',
  'expect',
  // A compressed answer could not be looked into on its way.
  'accept-encoding',
  // An agent does not tell the controller where it comes from.
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'x-real-ip',
]);

const notDown = new Set([
  ...hopByHopHeaders,
  'set-cookie',
  'server',
  'date',
  'alt-svc',
  'location',
]);

/** Names and values in turn, as `IncomingMessage.rawHeaders` has them. */
export function upstreamHeaders(
  raw: readonly string[],
  options: {
    readonly ownKey: string;
    readonly authorization: string | null;
    /** The body is another than the client's: its length is. */
    readonly isRewritten: boolean;
  },
): string[] {
  const dropped = connectionTokens(raw);
  const headers: string[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    const value = raw[index + 1] ?? '';
    const lower = name.toLowerCase();
    if (options.isRewritten && lower === 'content-length') continue;
    if (notUpstream.has(lower) || dropped?.has(lower) === true) continue;
    if (value.includes(options.ownKey)) continue;
    headers.push(name, value);
  }
  if (options.authorization !== null) headers.push('authorization', options.authorization);
  return headers;
}

/** Headers of the answer that the agent sees. */
export function answerHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
  secrets: readonly string[],
): Record<string, string | string[]> {
  const kept: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || notDown.has(name)) continue;
    const text = typeof value === 'string' ? value : value.join('\n');
    if (secrets.some((secret) => text.includes(secret))) continue;
    kept[name] = value;
  }
  return kept;
}

/** Names that a `Connection` header declares to be of this connection; null = none but the usual ones. */
function connectionTokens(raw: readonly string[]): ReadonlySet<string> | null {
  let tokens: Set<string> | null = null;
  for (let index = 0; index + 1 < raw.length; index += 2) {
    if (raw[index]?.toLowerCase() !== 'connection') continue;
    for (const token of (raw[index + 1] ?? '').split(','))
      (tokens ??= new Set()).add(token.trim().toLowerCase());
  }
  return tokens;
}
