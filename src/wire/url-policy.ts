/**
 * Which addresses of a request the server may send something to: callbacks and model calls carry keys, and whoever may submit rollouts must not reach
 * what only this host can reach. Names are looked at again when a connection is made, by the address that it goes to: see `guard`.
 */
import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { RolloutError } from '../core/errors.ts';
import { parseIpAddress } from './ip-address.ts';
import { isPrivateAddress } from './private-address.ts';

export interface UrlPolicyOptions {
  /** Origins (`https://host:port`) or prefixes (`https://host/callbacks/`); empty = any. */
  readonly allow: readonly string[];
  /** Loopback, link-local, private and other addresses that are not on the public network. */
  readonly privateAddresses: 'allow' | 'deny';
}

/** Pieces of an http(s) URL, as text: what a receiver encoded stays as it is. */
export interface UrlParts {
  /** Scheme, host and port: fit for logs. */
  readonly origin: string;
  /** Without brackets. */
  readonly host: string;
  /** Path and query. */
  readonly path: string;
  /** `Basic …` from user and password; null = none. */
  readonly authorization: string | null;
}

const pattern = /^(https?):\/\/(?:([^/?#\\]*)@)?([^/?#@\\]+)([/?][^#]*)?(?:#.*)?$/i;

/** null for what is no http(s) URL. */
export function urlParts(url: string): UrlParts | null {
  const [, scheme = '', login, authority = '', rest = ''] = pattern.exec(url) ?? [];
  const parsed = URL.parse(`${scheme}://${authority}`);
  if (parsed === null || /[\u0000-\u0020\u007f]/.test(url)) return null;
  return {
    origin: parsed.origin,
    host: parsed.hostname.replace(/^\[(.*)\]$/, '$1'),
    path: encoded(rest.startsWith('/') ? rest : `/${rest}`),
    authorization: login === undefined ? null : `Basic ${base64(login)}`,
  };
}

export class UrlPolicy {
  readonly #allow: readonly UrlParts[];
  readonly #isPrivateAllowed: boolean;
  readonly #trusted = new Set<string>();

  /** CONFIG_INVALID for an entry of the allow list that is no http(s) URL. */
  constructor(options: UrlPolicyOptions) {
    this.#allow = options.allow.map(entryOf);
    this.#isPrivateAllowed = options.privateAddresses === 'allow';
  }

  /** Lets an address of this process pass, whatever the rules say; answers how to end that. `origin` names it by its IP address. */
  trust(origin: string): () => void {
    this.#trusted.add(origin);
    return () => void this.#trusted.delete(origin);
  }

  /** Why nothing may be sent to `url`, without its path and login; null = it may. */
  problem(url: string): string | null {
    const parts = urlParts(url);
    if (parts === null) return 'is not an http or https URL';
    if (this.#trusted.has(parts.origin)) return null;
    const entry = this.#allow.find((each) => isBelow(parts, each));
    if (this.#allow.length > 0 && entry === undefined)
      return `is not in the list of allowed addresses: ${parts.origin}`;
    // Whoever wrote the address itself into the list meant it; a name may come to mean any address.
    if (this.#isPrivateAllowed || (entry !== undefined && isPrivateHost(entry.host))) return null;
    return isPrivateHost(parts.host) ? `names a private address: ${parts.host}` : null;
  }

  /**
   * Name resolution for connections to hosts of checked URLs, which refuses what resolves to a private address when those are denied. `hosts` that the
   * list names by private address are exempt.
   */
  guard(lookup: LookupFunction): LookupFunction {
    if (this.#isPrivateAllowed) return lookup;
    return (hostname, options, callback) => {
      const isNamed = this.#allow.some(({ host }) => host === hostname && isPrivateHost(host));
      lookup(hostname, options, (error, address, family) => {
        if (error !== null || isNamed || !resolvesToPrivate(address))
          callback(error, address, family);
        else callback(urlRefused('the address', `resolves to a private one: ${hostname}`), '', 0);
      });
    };
  }
}

/** The error for a URL with a {@link UrlPolicy.problem}; `what` names it: `completion_callback_url`. */
export function urlRefused(what: string, problem: string): RolloutError {
  return new RolloutError('CALLBACK_URL_REFUSED', `${what} ${problem}`, {
    phase: 'callback',
    remedy: 'Use an address that the operator allows ([callbacks] allow and private_addresses).',
  });
}

function entryOf(text: string, index: number): UrlParts {
  const parts = urlParts(text);
  if (parts !== null && parts.authorization === null) return parts;
  throw new RolloutError('CONFIG_INVALID', `"${text}" is not an http or https URL without login`, {
    phase: 'config',
    field: `callbacks.allow.${index}`,
    remedy:
      'Write an origin or the beginning of URLs, such as https://controller.example:8443/callbacks/.',
  });
}

/** By whole segments: `/call` does not allow `/callback`. Dots and escapes that a receiver may resolve are below nothing but an origin. */
function isBelow(url: UrlParts, entry: UrlParts): boolean {
  if (url.origin !== entry.origin) return false;
  if (entry.path === '/') return true;
  const [path = ''] = url.path.split('?');
  if (/(^|\/)(\.|%2e){1,2}([/;]|%3b|$)|%2f|%5c|\\/i.test(path)) return false;
  return path === entry.path || path.startsWith(entry.path.replace(/\/?$/, '/'));
}

/** Names of this host count; other names have to be resolved first. */
function isPrivateHost(host: string): boolean {
  if (/(^|\.)localhost\.?$/i.test(host)) return true;
  const address = parseIpAddress(host.replace(/%.*$/, ''));
  return address !== null && isPrivateAddress(address);
}

function resolvesToPrivate(found: string | readonly LookupAddress[]): boolean {
  return typeof found === 'string'
    ? isPrivateHost(found)
    : found.some(({ address }) => isPrivateHost(address));
}

/** What is no ASCII cannot stand in a request line; the rest stays as it is. */
function encoded(path: string): string {
  return path.toWellFormed().replace(/[^\u0000-\u007e]+/g, encodeURIComponent);
}

function base64(login: string): string {
  const at = login.includes(':') ? login : `${login}:`;
  try {
    return Buffer.from(decodeURIComponent(at)).toString('base64');
  } catch {
    return Buffer.from(at).toString('base64');
  }
}
