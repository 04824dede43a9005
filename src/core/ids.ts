import { randomInt } from 'node:crypto';

/** The ShortUUID alphabet that Harbor uses for names: no 0, 1, I, O, l. */
export const shortUuidAlphabet = '23456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz';
const lowerAlphabet = 'abcdefghijklmnopqrstuvwxyz0123456789';

function pick(from: string, length: number): string {
  return Array.from({ length }, () => from.charAt(randomInt(from.length))).join('');
}

/** Random short id in ShortUUID's alphabet, as Harbor puts behind `__` in trial names. */
export function shortId(length: number): string {
  return pick(shortUuidAlphabet, length);
}

/** Random id of lower-case letters and digits, safe in container, network and cgroup names. */
export function lowerId(length: number): string {
  return pick(lowerAlphabet, length);
}
