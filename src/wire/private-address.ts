import { parseIpAddress, widthOf, type IpAddress } from './ip-address.ts';

/** Everything that is not an address of the public network: this host, its link, its site, reserved and multicast ranges. */
const privateRanges: readonly string[] = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16'],
  ...['172.16.0.0/12', '192.0.0.0/24', '192.168.0.0/16', '198.18.0.0/15', '224.0.0.0/3'],
  ...['::/128', '::1/128', '64:ff9b:1::/48', '100::/64', 'fc00::/7', 'fe80::/10', 'fec0::/10'],
  'ff00::/8',
];

/** Ranges of IPv6 that stand for an IPv4 address, and where in them its last bit is. */
const carriers: readonly { readonly range: string; readonly shift: bigint }[] = [
  { range: '::/96', shift: 0n },
  { range: '::ffff:0:0/96', shift: 0n },
  { range: '::ffff:0:0:0/96', shift: 0n },
  { range: '64:ff9b::/96', shift: 0n },
  { range: '2002::/16', shift: 80n },
];

/** Also for IPv6 addresses that carry a private IPv4 address (mapped, NAT64, 6to4). */
export function isPrivateAddress(address: IpAddress): boolean {
  if (privateRanges.some((range) => isWithin(address, range))) return true;
  return carriers.some(
    ({ range, shift }) =>
      isWithin(address, range) &&
      isPrivateAddress({ family: 4, bits: (address.bits >> shift) & 0xffff_ffffn }),
  );
}

function isWithin(address: IpAddress, range: string): boolean {
  const [text = '', prefix] = range.split('/');
  const network = parseIpAddress(text);
  if (network?.family !== address.family) return false;
  const shift = BigInt(widthOf(address.family) - Number(prefix));
  return address.bits >> shift === network.bits >> shift;
}
