/**
 * Who calls: by a bearer key, by a key in front of the path (`/k/KEY/…`, for clients that cannot send a header), by the address it comes from, or, where
 * no key is set at all, because only this machine gets here. A key that is not known is refused even from an address that needs none. What comes out of a sandbox of
 * this machine is not this machine.
 */
import os from 'node:os';
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { isIP } from 'node:net';
import type { Caller } from '../scheduler/rollout-service.ts';
import type { AdminSecret } from './admin-secret.ts';
import type { KeyRing } from './key-ring.ts';
import { isSandboxAddress } from '../wire/sandbox-address.ts';
import { isLoopbackAddress } from './may-listen.ts';
import type { AllowFrom } from './ports.ts';
import { Refusal, refuse } from './refusal.ts';

export class Access {
  readonly #keys: KeyRing;
  readonly #allowFrom: AllowFrom;
  readonly #keysInPaths = new WeakMap<IncomingMessage, string>();
  readonly #callers = new WeakMap<IncomingMessage, Caller>();

  constructor(keys: KeyRing, allowFrom: AllowFrom) {
    this.#keys = keys;
    this.#allowFrom = allowFrom;
  }

  /** Takes the key out of an address before anything else sees it. */
  rewriteUrl(url: string, raw: IncomingMessage): string {
    const [, key, rest = ''] = /^\/k\/([^/?]+)(.*)$/s.exec(url) ?? [];
    if (key === undefined) return url;
    this.#keysInPaths.set(raw, decoded(key));
    const plain = rest.startsWith('/') ? rest : `/${rest}`;
    // The framework keeps the address as it came under this name.
    (raw as IncomingMessage & { originalUrl?: string }).originalUrl = plain;
    return plain;
  }

  /** Decides who calls, and remembers it; a refusal when it is nobody. `secret`: what the bearer has to be in the place of a key; null = there is none. */
  admit(request: FastifyRequest, secret: AdminSecret = null): Refusal | null {
    const { raw } = request;
    const inPath = this.#keysInPaths.get(raw) ?? null;
    const decision =
      secret === null
        ? this.#decide(raw, inPath ?? bearerOf(raw))
        : this.#decideBySecret(raw, inPath, secret);
    if ('status' in decision) return decision;
    this.#callers.set(raw, decision);
    return null;
  }

  /** The same for a request that no route has: null = somebody who may. */
  refusalOf(raw: IncomingMessage, keyInPath: string | null): Refusal | null {
    const decision = this.#decide(raw, keyInPath ?? bearerOf(raw));
    return 'status' in decision ? decision : null;
  }

  /** null = nobody known: only for routes that ask for no key. */
  callerOf(request: FastifyRequest): Caller | null {
    return this.#callers.get(request.raw) ?? null;
  }

  /** Whoever has the secret is the operator, unless a key in the path says whose trials are meant. */
  #decideBySecret(
    raw: IncomingMessage,
    inPath: string | null,
    secret: NonNullable<AdminSecret>,
  ): Caller | Refusal {
    if (!secret.fits(raw.headers.authorization))
      return new Refusal(403, 'Invalid or missing admin secret');
    return inPath === null ? { tenant: null } : this.#decide(raw, inPath);
  }

  #decide(raw: IncomingMessage, key: string | null): Caller | Refusal {
    const operator: Caller = { tenant: null };
    const address = raw.socket.remoteAddress ?? '';
    // Also where nobody needs a key: parts of the server have keys of their own.
    const known = key === null ? null : this.#keys.identify(key);
    if (known !== null) return known;
    if (this.#keys.hasKeys && key !== null) return unauthorized('the key is not known');
    if (isSandboxAddress(address))
      return refuse('FORBIDDEN', 'what runs in a sandbox may not call without a key');
    if (isForeignPage(raw)) return refuse('FORBIDDEN', 'a web page of another origin may not call');
    if (this.#allowFrom.has(address)) return operator;
    if (this.#keys.hasKeys) return unauthorized('a key is needed');
    if (!isLoopbackAddress(address))
      return refuse('FORBIDDEN', 'without a key only this machine may call');
    return hasLocalHost(raw)
      ? operator
      : refuse('FORBIDDEN', 'the Host header does not name this machine');
  }
}

function unauthorized(detail: string): Refusal {
  return refuse('UNAUTHORIZED', detail, { 'www-authenticate': 'Bearer' });
}

function bearerOf({ headers }: IncomingMessage): string | null {
  return /^bearer +(\S+) *$/i.exec(headers.authorization ?? '')?.[1] ?? null;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** A browser says which page sends a request; our own pages have our own origin. */
function isForeignPage({ headers }: IncomingMessage): boolean {
  const { origin, host } = headers;
  if (origin === undefined) return headers['sec-fetch-site'] === 'cross-site';
  return !URL.canParse(origin) || new URL(origin).host !== host;
}

/** A page whose name was made to point here still says that name. */
function hasLocalHost({ headers }: IncomingMessage): boolean {
  const name = (headers.host ?? '').replace(/:\d+$/, '').toLowerCase();
  return (
    isIP(name.replace(/^\[|\]$/g, '')) !== 0 ||
    name === 'localhost' ||
    name.endsWith('.localhost') ||
    name === os.hostname().toLowerCase()
  );
}
