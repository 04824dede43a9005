import { RolloutError } from '../core/errors.ts';
import { parseIpAddress, widthOf, type IpAddress } from '../wire/ip-address.ts';
import type { KeyRing } from './key-ring.ts';
import type { AllowFrom } from './ports.ts';

/** LISTEN_REFUSED for an address that others reach while nobody is asked for a key. */
export function assertMayListen(host: string, keys: KeyRing, allowFrom: AllowFrom): void {
  if (isLoopbackHost(host) || keys.hasKeys || !allowFrom.isEmpty) return;
  throw new RolloutError('LISTEN_REFUSED', `${host} is open to other machines, and no key is set`, {
    phase: 'server',
    field: 'listen.host',
    remedy: 'Set a control key, or say with allow_from who needs none, or listen on 127.0.0.1.',
  });
}

/** Blocks (`10.0.0.0/8`) and single addresses. CONFIG_INVALID names the one that is neither. */
export function compileAllowFrom(entries: readonly string[]): AllowFrom {
  const blocks = entries.map((entry) => {
    const block = readBlock(entry.trim());
    if (block !== null) return block;
    throw new RolloutError(
      'CONFIG_INVALID',
      `${JSON.stringify(entry)} is no address and no CIDR block`,
      {
        phase: 'config',
        field: 'listen.allow_from',
        remedy: 'Write 10.1.2.3, 10.0.0.0/8 or fd00::/8.',
      },
    );
  });
  return {
    isEmpty: blocks.length === 0,
    has(text) {
      const address = plainAddress(text);
      return address !== null && blocks.some((block) => contains(block, address));
    },
  };
}

/** Whether only this machine reaches a listener on `host`. */
export function isLoopbackHost(host: string): boolean {
  return host.toLowerCase() === 'localhost' || isLoopbackAddress(host);
}

export function isLoopbackAddress(text: string): boolean {
  const address = plainAddress(text);
  if (address === null) return false;
  return address.family === 4 ? address.bits >> 24n === 127n : address.bits === 1n;
}

interface Block {
  readonly network: IpAddress;
  readonly prefix: number;
}

function readBlock(text: string): Block | null {
  const [base = '', suffix] = text.split('/', 2);
  const network = parseIpAddress(base);
  if (network === null || text.split('/').length > 2) return null;
  const width = widthOf(network.family);
  if (suffix === undefined) return { network, prefix: width };
  const prefix = Number(suffix);
  return /^\d{1,3}$/.test(suffix) && prefix <= width ? { network, prefix } : null;
}

function contains({ network, prefix }: Block, address: IpAddress): boolean {
  if (network.family !== address.family) return false;
  const hostBits = BigInt(widthOf(network.family) - prefix);
  return network.bits >> hostBits === address.bits >> hostBits;
}

/** Without a scope; IPv4 mapped into IPv6 as IPv4. */
function plainAddress(text: string): IpAddress | null {
  const address = parseIpAddress(text.replace(/%.*$/, ''));
  if (address === null || address.family === 4) return address;
  return address.bits >> 32n === 0xffffn
    ? { family: 4, bits: address.bits & 0xffffffffn }
    : address;
}
