import type { LookupFunction } from 'node:net';
import { LinkedAbort } from '../../core/linked-abort.ts';
import { raceSignal } from '../../core/race-signal.ts';

/** Addresses of a host, as `lookup` finds them. Rejects after `ms`: the resolver of the system knows no end of its own. */
export async function resolveHost(
  host: string,
  {
    lookup,
    ms,
    signal,
  }: {
    readonly lookup: LookupFunction;
    readonly ms: number;
    readonly signal: AbortSignal;
  },
): Promise<readonly string[]> {
  using limit = new LinkedAbort([signal], {
    ms,
    reason: () => new Error(`${host} was not resolved within ${ms / 1_000} s`),
  });
  const found = new Promise<readonly string[]>((resolve, reject) => {
    lookup(host, { all: true }, (error, addresses) => {
      if (error !== null) reject(error);
      else if (typeof addresses === 'string') resolve([addresses]);
      else resolve(addresses.map(({ address }) => address));
    });
  });
  return await raceSignal(found, limit.signal);
}
