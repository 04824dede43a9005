import { isIPv4, isIPv6 } from 'node:net';

/** An IP address as a number, with its width. */
export interface IpAddress {
  readonly family: 4 | 6;
  readonly bits: bigint;
}

const widths = { 4: 32, 6: 128 } as const;

/** Reads an IPv4 or IPv6 literal without scope; null for anything else. */
export function parseIpAddress(text: string): IpAddress | null {
  if (isIPv4(text)) return { family: 4, bits: joinGroups(text.split('.').map(Number), 8) };
  if (isIPv6(text) && !text.includes('%'))
    return { family: 6, bits: joinGroups(groupsOf(text), 16) };
  return null;
}

/** The canonical spelling: dotted for IPv4, lower case with the longest run of zeros left out for IPv6. */
export function formatIpAddress({ family, bits }: IpAddress): string {
  if (family === 4) return splitGroups(bits, 8, 4).join('.');
  const plain = splitGroups(bits, 16, 8)
    .map((group) => group.toString(16))
    .join(':');
  return new URL(`http://[${plain}]/`).hostname.slice(1, -1);
}

/** Whether every bit behind the first `prefix` is zero. `prefix` must lie within the width of the family. */
export function hasNoHostBits({ family, bits }: IpAddress, prefix: number): boolean {
  const hostWidth = BigInt(widths[family] - prefix);
  return (bits >> hostWidth) << hostWidth === bits;
}

export function widthOf(family: IpAddress['family']): number {
  return widths[family];
}

/** The eight groups of a valid IPv6 literal, `::` and a dotted tail written out. */
function groupsOf(text: string): number[] {
  const dotted = /(?<=:)[\d.]+$/.exec(text)?.[0] ?? '';
  const tail = dotted.includes('.') ? dotted : '';
  const [head = '', rest] = text.slice(0, text.length - tail.length).split('::');
  const tailGroups =
    tail === '' ? [] : splitGroups(joinGroups(tail.split('.').map(Number), 8), 16, 2);
  const left = hexGroups(head);
  if (rest === undefined) return [...left, ...tailGroups];
  const right = [...hexGroups(rest), ...tailGroups];
  return [...left, ...Array<number>(8 - left.length - right.length).fill(0), ...right];
}

function hexGroups(text: string): number[] {
  return text
    .split(':')
    .filter((group) => group !== '')
    .map((group) => parseInt(group, 16));
}

function joinGroups(groups: readonly number[], width: number): bigint {
  return groups.reduce((bits, group) => (bits << BigInt(width)) | BigInt(group), 0n);
}

function splitGroups(bits: bigint, width: number, count: number): number[] {
  const mask = (1n << BigInt(width)) - 1n;
  return Array.from({ length: count }, (_, index) =>
    Number((bits >> BigInt(width * (count - 1 - index))) & mask),
  );
}
