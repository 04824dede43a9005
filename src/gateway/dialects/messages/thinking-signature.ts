/**
 * The signature of a thinking block: opaque to the client, which gives it back unchanged. Where the client sees the thinking it only marks the block as ours;
 * where it does not (`display: "omitted"`) it carries the text, so that the next turn has it again.
 */
import { createHash } from 'node:crypto';

const marking = 1;
const carrying = 2;
const markBytes = 12;

export function signatureOf(thinking: string, isShown: boolean): string {
  const body = isShown
    ? createHash('sha256').update(thinking).digest().subarray(0, markBytes)
    : Buffer.from(thinking);
  return Buffer.concat([Buffer.from([isShown ? marking : carrying]), body]).toString('base64url');
}

/** The thinking that a signature carries; null = none, or it is another's. */
export function carriedThinking(signature: string): string | null {
  if (!/^[\w-]+$/.test(signature)) return null;
  const bytes = Buffer.from(signature, 'base64url');
  if (bytes[0] !== carrying || bytes.toString('base64url') !== signature) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes.subarray(1));
  } catch {
    return null;
  }
}
