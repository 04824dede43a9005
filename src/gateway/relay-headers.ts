/**
 * Which headers go through. Upstream learns nothing of our key and nothing that concerns one connection only; the agent gets no cookie and no header
 * that names the upstream's key.
 */
import { hopByHopHeaders } from '../wire/hop-by-hop-headers.ts';
import type { HeaderList } from './upstream/message-head.ts';

/** Those of one connection, and those that the relay sets itself. */
const notUpstream = new Set([
  ...hopByHopHeaders,
  'host',
  // How the body is framed is said by whoever sends it.
  'content-length',
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
  raw: HeaderList,
  options: { readonly ownKey: string | null; readonly authorization: string | null },
): string[] {
  const dropped = connectionTokens(raw);
  const headers: string[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    const value = raw[index + 1] ?? '';
    const lower = name.toLowerCase();
    if (notUpstream.has(lower) || dropped?.has(lower) === true) continue;
    if (options.ownKey !== null && value.includes(options.ownKey)) continue;
    headers.push(name, value);
  }
  if (options.authorization !== null) headers.push('authorization', options.authorization);
  return headers;
}

/** Of an answer's, with names in lower case: those that the agent sees. `hasOtherLength`: what it gets is not what came. */
export function answerHeaders(
  headers: HeaderList,
  options: { readonly secrets: readonly string[]; readonly hasOtherLength: boolean },
): string[] {
  const { secrets, hasOtherLength } = options;
  const kept: string[] = [];
  for (let index = 0; index + 1 < headers.length; index += 2) {
    const name = headers[index] ?? '';
    const value = headers[index + 1] ?? '';
    if (notDown.has(name) || (hasOtherLength && name === 'content-length')) continue;
    if (secrets.some((secret) => value.includes(secret))) continue;
    kept.push(name, value);
  }
  return kept;
}

/** Names that a `Connection` header declares to be of this connection; null = none but the usual ones. */
function connectionTokens(raw: HeaderList): ReadonlySet<string> | null {
  let tokens: Set<string> | null = null;
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    if (name.length !== connection.length || name.toLowerCase() !== connection) continue;
    for (const part of (raw[index + 1] ?? '').split(','))
      (tokens ??= new Set()).add(part.trim().toLowerCase());
  }
  return tokens;
}

const connection = 'connection';
