/**
 * Bytes of an upstream on their way to an agent, with other letters where a secret stood: as many as before, so that lengths hold that were told. What may be the
 * beginning of a secret waits for the next piece.
 */
const nothing: Buffer = Buffer.alloc(0);

export class SecretFilter {
  readonly #secrets: readonly Buffer[];
  #held: Buffer = nothing;

  /** As `secretBytes` gives them. */
  constructor(secrets: readonly Buffer[]) {
    this.#secrets = secrets;
  }

  push(piece: Buffer): Buffer {
    if (this.#secrets.length === 0) return piece;
    const bytes = this.#held.length === 0 ? piece : Buffer.concat([this.#held, piece]);
    const shown = this.#masked(bytes);
    const from = this.#beginningIn(shown);
    this.#held = nothing;
    if (from === shown.length) return shown;
    this.#held = shown.subarray(from);
    return shown.subarray(0, from);
  }

  /** What waited and was no secret after all. */
  end(): Buffer {
    const held = this.#held;
    this.#held = nothing;
    return held;
  }

  #masked(bytes: Buffer): Buffer {
    let masked = bytes;
    for (const secret of this.#secrets)
      for (let at = masked.indexOf(secret); at !== -1; at = masked.indexOf(secret, at)) {
        // The upstream's bytes are left as they are: others may read them too.
        if (masked === bytes) masked = Buffer.from(bytes);
        masked.fill('*', at, at + secret.length);
      }
    return masked;
  }

  /** Where a secret may begin that goes on in the next piece; the length = nowhere. */
  #beginningIn(bytes: Buffer): number {
    let first = bytes.length;
    for (const secret of this.#secrets) {
      const initial = secret[0] ?? 0;
      const least = Math.max(0, bytes.length - secret.length + 1);
      for (let at = bytes.indexOf(initial, least); at !== -1; at = bytes.indexOf(initial, at + 1))
        if (bytes.compare(secret, 0, bytes.length - at, at) === 0) {
          first = Math.min(first, at);
          break;
        }
    }
    return first;
  }
}

export function secretBytes(secrets: readonly string[]): readonly Buffer[] {
  return secrets.filter((secret) => secret !== '').map((secret) => Buffer.from(secret));
}
