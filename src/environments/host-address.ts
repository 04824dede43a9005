/** The host endpoint has two addresses, one for the host and one for the sandbox; whatever follows the authority is the same, byte for byte. */
import type { HostEndpoint } from './environment.ts';

/** `text` as the sandbox needs it: an address of the endpoint is replaced by the one from inside, any other text stays. */
export function seenFromInside(
  text: string,
  { endpoint, insideUrl }: { readonly endpoint: HostEndpoint; readonly insideUrl: string },
): string {
  const authority = `${bracketed(endpoint.host)}:${endpoint.port}`;
  const found = [
    `http://${authority}`,
    ...(endpoint.port === 80 ? [`http://${bracketed(endpoint.host)}`] : []),
  ];
  const outside = found.find(
    (one) => text === one || (text.startsWith(one) && '/?#'.includes(text.charAt(one.length))),
  );
  return outside === undefined ? text : insideUrl.replace(/\/$/, '') + text.slice(outside.length);
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}
