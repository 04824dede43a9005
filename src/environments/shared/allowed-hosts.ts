import { readFileSync } from 'node:fs';
import { BlockList, isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import type { NetworkPolicy } from '../../wire/network-policy.ts';

/** Why a destination is refused: not in the policy, or an address of this machine that no rule names as an address. */
export type Refusal = 'not-allowed' | 'local-address';

/**
 * A network policy as questions about names and addresses. Names and addresses are separate on purpose: a rule on a name lets
 * the name be resolved, and what it resolves to is checked again, so that a name pointing at this machine opens nothing.
 */
export class HostRules {
  readonly #isPublic: boolean;
  readonly #names = new Set<string>();
  readonly #suffixes: string[] = [];
  readonly #addresses = new BlockList();

  constructor(policy: NetworkPolicy) {
    this.#isPublic = policy.mode === 'public';
    for (const host of policy.mode === 'allowlist' ? policy.hosts : []) {
      switch (host.kind) {
        case 'hostname':
          this.#names.add(host.value);
          break;
        case 'wildcard-hostname':
          this.#suffixes.push(host.value.slice(1)); // `*.example.org` → `.example.org`: any depth below, not the name itself
          break;
        case 'ipv4-address':
          this.#addresses.addAddress(host.value, 'ipv4');
          break;
        case 'ipv6-address':
          this.#addresses.addAddress(host.value, 'ipv6');
          break;
        case 'ipv4-cidr':
        case 'ipv6-cidr': {
          const [base = '', prefix = ''] = host.value.split('/');
          const family = host.kind === 'ipv4-cidr' ? 'ipv4' : 'ipv6';
          this.#addresses.addSubnet(base, Number(prefix), family);
          break;
        }
      }
    }
  }

  /** Whether a name may be resolved at all: unlisted names are never sent to a name server, which would leak through it. */
  allowsName(name: string): boolean {
    if (this.#isPublic) return true;
    const wanted = normaliseName(name);
    return this.#names.has(wanted) || this.#suffixes.some((suffix) => wanted.endsWith(suffix));
  }

  /**
   * The verdict on one address; `name` is the allowed name that led to it, or null when the client named the address.
   * null = may be connected to.
   */
  refuses(address: string, name: string | null, options: LocalAddresses = {}): Refusal | null {
    const plain = plainAddress(address);
    const family = isIP(plain) === 6 ? 'ipv6' : 'ipv4';
    if (this.#addresses.check(plain, family)) return null;
    const isCovered = this.#isPublic || (name !== null && this.allowsName(name));
    if (!isCovered) return 'not-allowed';
    const isLocal = options.allowLocal !== true && isLocalAddress(plain);
    return isLocal ? 'local-address' : null;
  }
}

export interface LocalAddresses {
  /** Lets names resolve to addresses of this machine; for tests, whose servers live there. */
  readonly allowLocal?: boolean;
}

function normaliseName(name: string): string {
  return name.toLowerCase().replace(/\.+$/, '');
}

/** IPv4 behind an IPv6 mapping is that IPv4 address, however it is written. */
export function plainAddress(address: string): string {
  const bare = address.replace(/^\[|\]$/g, '').replace(/%.*$/, '');
  if (isIP(bare) !== 6) return bare;
  const hex = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(
    new URL(`http://[${bare}]`).hostname.slice(1, -1),
  );
  if (hex === null) return bare;
  const [high, low] = [parseInt(hex[1] ?? '', 16), parseInt(hex[2] ?? '', 16)];
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

const neverRouted = new BlockList();
neverRouted.addSubnet('0.0.0.0', 8, 'ipv4');
neverRouted.addSubnet('127.0.0.0', 8, 'ipv4');
neverRouted.addSubnet('169.254.0.0', 16, 'ipv4'); // link-local, also the metadata services of clouds
neverRouted.addSubnet('224.0.0.0', 3, 'ipv4');
neverRouted.addAddress('::', 'ipv6');
neverRouted.addAddress('::1', 'ipv6');
neverRouted.addSubnet('fe80::', 10, 'ipv6');
neverRouted.addSubnet('ff00::', 8, 'ipv6');

/** Loopback, link-local, multicast, or any address of this machine's interfaces now. */
export function isLocalAddress(address: string): boolean {
  const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
  if (neverRouted.check(address, family)) return true;
  const own = new BlockList();
  for (const each of [...listedAddresses(), ...kernelAddresses()])
    own.addAddress(each, isIP(each) === 6 ? 'ipv6' : 'ipv4');
  return own.check(address, family);
}

function listedAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((addresses) =>
    (addresses ?? []).map((each) => plainAddress(each.address)),
  );
}

/** Also those of interfaces without a carrier, such as an idle bridge, which the list above leaves out. */
function kernelAddresses(): readonly string[] {
  const found: string[] = [];
  const trie = readOr('/proc/net/fib_trie');
  for (const [, address] of trie.matchAll(/\|-- (\d+\.\d+\.\d+\.\d+)\n\s+\/32 host LOCAL/g))
    if (address !== undefined) found.push(address);
  for (const line of readOr('/proc/net/if_inet6').split('\n')) {
    const hex = /^[0-9a-f]{32}/.exec(line)?.[0];
    if (hex !== undefined) found.push((hex.match(/.{4}/g) ?? []).join(':'));
  }
  return found;
}

function readOr(file: string): string {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return ''; // not Linux: the list of interfaces has to do
  }
}
