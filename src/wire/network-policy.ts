import { RolloutError } from '../core/errors.ts';
import { formatIpAddress, hasNoHostBits, parseIpAddress, widthOf } from './ip-address.ts';

/** What a sandbox may reach, as Harbor's task format names it. Entries of `hosts` are normalised by `parseAllowedHost`. */
export type NetworkPolicy =
  | { readonly mode: 'public' }
  | { readonly mode: 'no-network' }
  | { readonly mode: 'allowlist'; readonly hosts: readonly AllowedHost[] };

export type AllowedHostKind =
  'hostname' | 'wildcard-hostname' | 'ipv4-address' | 'ipv6-address' | 'ipv4-cidr' | 'ipv6-cidr';

export interface AllowedHost {
  readonly kind: AllowedHostKind;
  /** Normalised text: lower case, no trailing dot, IPv6 compressed, CIDR with host bits zero. */
  readonly value: string;
}

/** Reads one entry of an allow list, as written in a task or on a command line. CONFIG_INVALID names what is wrong with it. */
export function parseAllowedHost(text: string, field = 'allowed_hosts'): AllowedHost {
  const result = readAllowedHost(text);
  if (typeof result !== 'string') return result;
  throw new RolloutError('CONFIG_INVALID', result, {
    phase: 'config',
    field,
    remedy:
      'Give a host name, *.suffix, an IP address or a CIDR block, without scheme, port or path.',
  });
}

/** The same as a value: the host, or the sentence that says what is wrong. */
export function readAllowedHost(text: string): AllowedHost | string {
  const entry = text.trim().toLowerCase().replace(/\.+$/, '');
  const quoted = JSON.stringify(text);
  if (entry === '') return 'an allowed host must not be empty';
  if (entry.includes('/')) return readCidr(entry, quoted);
  if (entry.includes(':')) {
    const address = parseIpAddress(entry);
    if (address === null)
      return `${quoted} is neither a host nor an IPv6 address (no port, scheme, brackets or scope)`;
    return { kind: 'ipv6-address', value: formatIpAddress(address) };
  }
  if (entry.startsWith('*.')) {
    const suffix = entry.slice(2);
    if (!isHostname(suffix) || parseIpAddress(suffix) !== null)
      return `${quoted}: behind "*." comes a host name`;
    return { kind: 'wildcard-hostname', value: entry };
  }
  if (entry.includes('*')) return `${quoted}: "*" is only allowed as a leading "*."`;
  if (!isHostname(entry)) return `${quoted} is not a host name`;
  return { kind: parseIpAddress(entry) === null ? 'hostname' : 'ipv4-address', value: entry };
}

const label = '[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?';
const hostname = new RegExp(`^${label}(?:\\.${label})*$`);

function isHostname(text: string): boolean {
  return hostname.test(text);
}

function readCidr(entry: string, quoted: string): AllowedHost | string {
  const [addressText = '', prefixText = '', ...more] = entry.split('/');
  const address = parseIpAddress(addressText);
  if (address === null || more.length > 0 || !/^\d{1,3}$/.test(prefixText))
    return `${quoted} is not a CIDR block such as 10.0.0.0/8 (URLs and paths are not hosts)`;
  const prefix = Number(prefixText);
  if (prefix > widthOf(address.family))
    return `${quoted}: the prefix is at most ${widthOf(address.family)}`;
  if (!hasNoHostBits(address, prefix)) return `${quoted} has host bits set`;
  return { kind: `ipv${address.family}-cidr`, value: `${formatIpAddress(address)}/${prefix}` };
}

/**
 * Adds hosts given at run time to a policy. A public policy reaches them anyway, so nothing changes and `isIgnored` asks for a
 * warning; otherwise the result is an allow list: what was allowed, then what is new.
 */
export function withExtraHosts(
  policy: NetworkPolicy,
  extra: readonly AllowedHost[],
): { readonly policy: NetworkPolicy; readonly isIgnored: boolean } {
  if (extra.length === 0) return { policy, isIgnored: false };
  if (policy.mode === 'public') return { policy, isIgnored: true };
  const allowed = policy.mode === 'allowlist' ? policy.hosts : [];
  const unique = new Map([...allowed, ...extra].map((host) => [host.value, host]));
  return { policy: { mode: 'allowlist', hosts: [...unique.values()] }, isIgnored: false };
}

/** Whether switching from one policy to the other changes nothing; the order of hosts does not matter. */
export function isSamePolicy(left: NetworkPolicy, right: NetworkPolicy): boolean {
  if (left.mode !== 'allowlist' || right.mode !== 'allowlist') return left.mode === right.mode;
  const values = new Set(left.hosts.map(({ value }) => value));
  const others = new Set(right.hosts.map(({ value }) => value));
  return values.size === others.size && [...values].every((value) => others.has(value));
}
