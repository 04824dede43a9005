import { createHash } from 'node:crypto';
import { shortUuidAlphabet } from '../../core/ids.ts';

const namespaces = {
  dns: '6ba7b8109dad11d180b400c04fd430c8',
  url: '6ba7b8119dad11d180b400c04fd430c8',
} as const;

const encodedLength = 22;

/** The version 5 UUID of `name` as 22 characters, bytewise what Harbor uses for the folders of its cache. */
export function shortUuid(name: string): string {
  const isUrl = /^https?:\/\//.test(name);
  const digest = createHash('sha1')
    .update(Buffer.from(isUrl ? namespaces.url : namespaces.dns, 'hex'))
    .update(name, 'utf8')
    .digest();
  const bytes = digest.subarray(0, 16);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return encode(BigInt(`0x${bytes.toString('hex')}`));
}

function encode(value: bigint): string {
  const base = BigInt(shortUuidAlphabet.length);
  let text = '';
  for (let rest = value; rest > 0n; rest /= base)
    text = shortUuidAlphabet.charAt(Number(rest % base)) + text;
  return text.padStart(encodedLength, shortUuidAlphabet.charAt(0));
}
