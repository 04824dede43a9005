import { isIPv4 } from 'node:net';

/**
 * Where connections out of sandboxes to this machine come from: an address of its loopback network that is nobody else's. Whoever asks where a caller is tells
 * agents from the programs of this machine by it.
 */
export const sandboxAddress = '127.83.66.88';

/** `address`: of a socket's far end; IPv4 mapped into IPv6 counts as IPv4. */
export function isSandboxAddress(address: string): boolean {
  return address === sandboxAddress || address === `::ffff:${sandboxAddress}`;
}

/** Whether that address can be the near end of a connection to `host`. */
export function isReachedFromSandboxAddress(host: string): boolean {
  return isIPv4(host) && host.startsWith('127.');
}
