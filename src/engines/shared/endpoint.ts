/**
 * The address of an engine, taken apart as text: a parser of URLs would decode, normalise or reorder what a proxy's path ids and signed queries
 * need byte for byte.
 */
import { RolloutError } from '../../core/errors.ts';

export interface Endpoint {
  /** Scheme, host and port. */
  readonly origin: string;
  /** Without user, password and query: fit for logs. */
  readonly url: string;
  /** Path and query of a request: `suffix` comes behind the base path, its own query behind the base's query. */
  pathTo(suffix: string): string;
  /** From the user and password of the address; null = none. */
  readonly authorization: string | null;
  /** Strings that no message may hold. */
  readonly secrets: readonly string[];
}

const pattern = /^(https?):\/\/(?:([^/?#]*)@)?([^/?#@]+)([^?#]*)(?:\?([^#]*))?(?:#.*)?$/i;

/** CONFIG_INVALID for an address that is empty or not http(s). */
export function parseEndpoint(baseUrl: string, apiKey: string | null): Endpoint {
  const match = pattern.exec(baseUrl);
  const [, scheme = '', userInfo, host = '', path = '', query] = match ?? [];
  const origin = `${scheme.toLowerCase()}://${host}`;
  // Whitespace and characters beyond Latin-1 cannot stand in a request line.
  if (match === null || /[^\u0021-\u00ff]/.test(baseUrl) || !URL.canParse(origin))
    throw new RolloutError('CONFIG_INVALID', 'the address of the engine is not an http(s) URL', {
      phase: 'config',
      field: 'engine.baseUrl',
      remedy: 'Give an address such as http://127.0.0.1:30000.',
    });
  const base = path.endsWith('/') ? path.slice(0, -1) : path;
  const login = userInfo === undefined ? null : loginOf(userInfo);
  return {
    origin,
    url: `${origin}${base}`,
    pathTo: (suffix) => {
      const [suffixPath = '', suffixQuery] = suffix.split('?', 2);
      const queries = [query, suffixQuery].filter((each) => each !== undefined && each !== '');
      return `${base}${suffixPath}${queries.length === 0 ? '' : `?${queries.join('&')}`}`;
    },
    authorization: login?.header ?? null,
    secrets: [...(login?.secrets ?? []), ...(apiKey === null ? [] : [apiKey])].filter(
      (secret) => secret.length >= 4,
    ),
  };
}

function loginOf(userInfo: string): {
  readonly header: string;
  readonly secrets: readonly string[];
} {
  const at = userInfo.indexOf(':');
  const user = decoded(at < 0 ? userInfo : userInfo.slice(0, at));
  const password = at < 0 ? '' : decoded(userInfo.slice(at + 1));
  const token = Buffer.from(`${user}:${password}`).toString('base64');
  return { header: `Basic ${token}`, secrets: [userInfo, password, token] };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // A lone percent sign is meant as it stands.
  }
}
