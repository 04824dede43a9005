/**
 * The opaque carrier in which a client brings back what the model thought: base64url of a version byte and the text in UTF-8. It is no secret, the summary beside
 * it says the same; it exists because clients that keep no state ask for `encrypted_content` and some send back nothing else.
 */
const version = 1;

export function sealReasoning(text: string): string {
  return Buffer.concat([Buffer.of(version), Buffer.from(text, 'utf8')]).toString('base64url');
}

/** null = not one of ours: it stays opaque. */
export function openReasoning(carrier: string): string | null {
  const bytes = Buffer.from(carrier, 'base64url');
  if (bytes[0] !== version || bytes.toString('base64url') !== carrier) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes.subarray(1));
  } catch {
    return null;
  }
}
