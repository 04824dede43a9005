/**
 * Who a trial belongs to: `session_server_id` is a bare `host:port`, and the address of the model must be the same server's, so that a heartbeat asks the
 * server that the trial really uses. Hosts are compared in one spelling, and where that differs by the addresses that they resolve to.
 */
import { isIP } from 'node:net';

/** What is wrong with an identity, for the client. */
export class IdentityProblem extends Error {
  override readonly name = 'IdentityProblem';
}

interface Origin {
  readonly host: string;
  readonly port: number;
}

/** Addresses of a host; rejects when there are none. */
export type ResolveHost = (host: string) => Promise<readonly string[]>;

const hostForm = /^[A-Za-z0-9][A-Za-z0-9._-]*$/;
const instanceForm = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** The id as it is; throws for one that cannot be. */
export function checkInstanceId(id: string): string {
  if (instanceForm.test(id)) return id;
  throw new IdentityProblem(
    'session_server_instance_id must be 1 to 128 letters, digits, dots, dashes and underscores, and begin with a letter or digit',
  );
}

/** `host:port` in the one spelling that is compared; throws for anything else. */
export function canonicalServerId(id: string): string {
  return spelled(readServerId(id));
}

/** `host:port` of an http(s) address, with the port of its scheme where it names none. */
export function serverIdOf(baseUrl: string): string {
  return spelled(originOf(baseUrl));
}

/** The canonical id, once the address of the model is known to be the same server's. */
export async function checkServerId(
  id: string,
  { baseUrl, resolve }: { readonly baseUrl: string; readonly resolve: ResolveHost },
): Promise<string> {
  const named = readServerId(id);
  const used = originOf(baseUrl);
  if (named.port !== used.port)
    throw new IdentityProblem('session_server_id and base_url have different ports');
  if (named.host !== used.host && !(await haveCommonAddress([named.host, used.host], resolve)))
    throw new IdentityProblem('session_server_id and base_url are different hosts');
  return spelled(named);
}

async function haveCommonAddress(
  hosts: readonly [string, string],
  resolve: ResolveHost,
): Promise<boolean> {
  try {
    const [some, others] = await Promise.all(hosts.map((host) => addressesOf(host, resolve)));
    return some?.some((address) => others?.includes(address) === true) === true;
  } catch {
    throw new IdentityProblem('a host of session_server_id or base_url does not resolve');
  }
}

async function addressesOf(host: string, resolve: ResolveHost): Promise<readonly string[]> {
  return isIP(host) === 0 ? (await resolve(host)).map(oneSpelling) : [host];
}

function readServerId(id: string): Origin {
  const [, bracketed, plain, port = ''] = /^(?:\[([^\]]*)\]|([^:]*)):(\d{1,5})$/.exec(id) ?? [];
  const host = bracketed ?? plain;
  if (host === undefined || (bracketed !== undefined && isIP(bracketed) !== 6))
    throw new IdentityProblem('session_server_id must be a bare host:port');
  return { host: hostOf(host), port: portOf(port) };
}

function originOf(baseUrl: string): Origin {
  const url = URL.parse(baseUrl);
  if (url === null || !['http:', 'https:'].includes(url.protocol))
    throw new IdentityProblem('base_url must be an http or https address');
  if (url.username !== '' || url.password !== '')
    throw new IdentityProblem('base_url must not hold a login');
  const preset = url.protocol === 'https:' ? '443' : '80';
  const host = url.hostname.replace(/^\[(.*)\]$/, '$1');
  return { host: hostOf(host), port: portOf(url.port === '' ? preset : url.port) };
}

function hostOf(host: string): string {
  if (host.includes('%')) throw new IdentityProblem('an address with a zone names no server');
  if (isIP(host) !== 0) return oneSpelling(host);
  if (!hostForm.test(host)) throw new IdentityProblem('this is no name of a host');
  return host.toLowerCase();
}

function oneSpelling(address: string): string {
  if (isIP(address) !== 6) return address;
  return new URL(`http://[${address}]`).hostname.slice(1, -1);
}

function portOf(text: string): number {
  const port = Number(text);
  if (port <= 65_535) return port;
  throw new IdentityProblem('a port is at most 65535');
}

function spelled({ host, port }: Origin): string {
  return isIP(host) === 6 ? `[${host}]:${port}` : `${host}:${port}`;
}
