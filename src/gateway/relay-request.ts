/** What a request asks of the gateway, and with which key: read from its line and headers alone. */
import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

export interface GatewayCall {
  /** What is appended to the upstream's path. */
  readonly suffix: '/chat/completions' | '/models';
  readonly method: 'POST' | 'GET';
  readonly key: string | { readonly problem: string };
}

const pattern = /^(?:\/k\/([^/?#]+))?(?:\/v1)?(\/chat\/completions|\/models)(?:\?|$)/;

/** null = the path is none of the gateway's. */
export function callOf(request: IncomingMessage): GatewayCall | null {
  const match = pattern.exec(request.url ?? '');
  if (match === null) return null;
  const isChat = match[2] === '/chat/completions';
  return {
    suffix: isChat ? '/chat/completions' : '/models',
    method: isChat ? 'POST' : 'GET',
    // A client that carries the key in its address may send anything as its key.
    key: match[1] ?? keyOf(request),
  };
}

function keyOf({ headers }: IncomingMessage): GatewayCall['key'] {
  const bearer = /^bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1];
  const given = headers['x-api-key'];
  const apiKey = typeof given === 'string' && given.trim() !== '' ? given.trim() : undefined;
  if (bearer !== undefined && apiKey !== undefined && !areEqual(bearer, apiKey))
    return { problem: 'the request carries two different keys' };
  return bearer ?? apiKey ?? { problem: 'the request carries no key' };
}

function areEqual(left: string, right: string): boolean {
  const [one, other] = [Buffer.from(left), Buffer.from(right)];
  return one.length === other.length && timingSafeEqual(one, other);
}
