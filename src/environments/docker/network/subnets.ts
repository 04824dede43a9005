import { createHash } from 'node:crypto';
import { BlockList } from 'node:net';
import { networkInterfaces } from 'node:os';
import { RolloutError } from '../../../core/errors.ts';

export interface Subnet {
  readonly cidr: string;
  /** Its first address: the host's side. */
  readonly gateway: string;
}

/**
 * The subnets of a pool in an order that differs by name, so that runs on one machine seldom try the same one first. The engine
 * is the arbiter: it refuses a subnet that is taken, then the next one is tried. Explicit small subnets leave the engine's own
 * address pools, which hold only some thirty networks, alone.
 */
export function* subnetsOf(
  pool: string,
  options: { readonly prefix: number; readonly seed: string },
): Generator<Subnet> {
  const [base = '', poolPrefix = ''] = pool.split('/');
  const width = Number(poolPrefix);
  if (!(width >= 8 && width <= options.prefix && options.prefix <= 30))
    throw new RolloutError('CONFIG_INVALID', `${pool} cannot be cut into /${options.prefix}`, {
      phase: 'config',
      field: 'networkPool',
      remedy: 'Use a private IPv4 range of at least /26.',
    });
  const count = 2 ** (options.prefix - width);
  const size = 2 ** (32 - options.prefix);
  const first = Math.floor(toNumber(base) / 2 ** (32 - width)) * 2 ** (32 - width);
  const start = createHash('sha256').update(options.seed).digest().readUInt32BE(0) % count;
  for (let step = 0; step < count; step += 1) {
    const address = first + ((start + step) % count) * size;
    yield { cidr: `${toText(address)}/${options.prefix}`, gateway: toText(address + 1) };
  }
}

/** Whether an address of this machine lies in the subnet, or the subnet in one of this machine's networks. */
export function isTakenHere(subnet: Subnet, interfaces = networkInterfaces()): boolean {
  const list = new BlockList();
  const [base = '', prefix = ''] = subnet.cidr.split('/');
  list.addSubnet(base, Number(prefix), 'ipv4');
  return Object.values(interfaces).some((addresses) =>
    (addresses ?? []).some((own) => {
      if (own.family !== 'IPv4') return false;
      if (list.check(own.address)) return true;
      const around = new BlockList();
      const width = Number(own.cidr?.split('/')[1] ?? 32);
      around.addSubnet(own.address, width, 'ipv4');
      return around.check(base);
    }),
  );
}

function toNumber(address: string): number {
  return address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
}

function toText(address: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join('.');
}
