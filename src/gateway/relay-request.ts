/** What a request asks of the gateway, and with which key: read from its line and headers alone. */
import { timingSafeEqual } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

/** What a path asks for. */
export type GatewayTarget =
  /** Bytes go to the upstream's path of this name, and its answer's come back. */
  | { readonly kind: 'relay'; readonly suffix: '/chat/completions' | '/models' }
  | { readonly kind: 'translate'; readonly dialect: 'chat' | 'responses' | 'messages' }
  | { readonly kind: 'count-tokens'; readonly dialect: 'messages' }
  /** A route of the dialect that is not offered, told so in its own words. */
  | { readonly kind: 'missing'; readonly dialect: 'responses' };

export interface GatewayCall {
  readonly target: GatewayTarget;
  readonly method: 'POST' | 'GET';
  readonly key: string | { readonly problem: string };
}

const targets: Readonly<Record<string, GatewayTarget>> = {
  '/chat/completions': { kind: 'relay', suffix: '/chat/completions' },
  '/models': { kind: 'relay', suffix: '/models' },
  '/responses': { kind: 'translate', dialect: 'responses' },
  '/responses/compact': { kind: 'missing', dialect: 'responses' },
  '/messages': { kind: 'translate', dialect: 'messages' },
  '/messages/count_tokens': { kind: 'count-tokens', dialect: 'messages' },
};

/** What of a request says which call it is, and whose. */
export interface AskedCall {
  readonly url?: string | undefined;
  readonly headers: {
    readonly authorization?: string | undefined;
    readonly 'x-api-key'?: string | string[] | undefined;
  };
}

/** What follows an optional key and `/v1`. */
export const gatewayPaths: readonly string[] = Object.keys(targets);

const pattern = /^(?:\/k\/([^/?#]+))?(?:\/v1)?(\/[a-z_]+(?:\/[a-z_]+)?)(?:\?|$)/;

/** null = the path is none of the gateway's. */
export function callOf(request: AskedCall): GatewayCall | null {
  const match = pattern.exec(request.url ?? '');
  const path = match?.[2] ?? '';
  const target = Object.hasOwn(targets, path) ? targets[path] : undefined;
  if (match === null || target === undefined) return null;
  return {
    target,
    method: path === '/models' ? 'GET' : 'POST',
    // A client that carries the key in its address may send anything as its key.
    key: match[1] ?? keyOf(request),
  };
}

/** A client looks whether anybody is there; it asks nothing. */
export function isGreeting({ method, url }: IncomingMessage): boolean {
  return method === 'HEAD' && /^(?:\/k\/[^/?#]+)?(?:\/|\/api\/hello)(?:\?|$)/.test(url ?? '');
}

function keyOf({ headers }: AskedCall): GatewayCall['key'] {
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
