/**
 * Strings that no line of a log may hold. Looking for them costs the same however many are known: where a known one may begin is read from a table of
 * character pairs, and only there a piece of text is looked up.
 */
const mark = '[REDACTED]';
/** Shorter ones are no secrets, and replacing them would make a log unreadable. */
const shortest = 4;
const pieceLength = 4;

export class SecretMask {
  /** How many spellings begin with a pair of characters. */
  readonly #starts = new Uint32Array(1 << 16);
  /** Spellings by their first characters, the longest first, each with how often it is known. */
  readonly #byPiece = new Map<string, Map<string, number>>();

  /** Each secret until the returned function is called; known twice, it stays until both are over. */
  add(secrets: readonly string[]): () => void {
    const spelled = secrets.filter((secret) => secret.length >= shortest).flatMap(spellings);
    for (const spelling of spelled) this.#learn(spelling);
    let isKnown = true;
    return () => {
      if (!isKnown) return;
      isKnown = false;
      for (const spelling of spelled) this.#forget(spelling);
    };
  }

  /** The text with every known secret, also as it stands inside JSON or a URL, replaced by `[REDACTED]`. */
  mask(text: string): string {
    if (this.#byPiece.size === 0) return text;
    let masked = '';
    let done = 0;
    for (let at = 0; at <= text.length - shortest; at += 1) {
      if (this.#starts[pairAt(text, at)] === 0) continue;
      const length = this.#lengthAt(text, at);
      if (length === 0) continue;
      masked += text.slice(done, at) + mark;
      done = at + length;
      at = done - 1;
    }
    return done === 0 ? text : masked + text.slice(done);
  }

  /** Of the longest known spelling that stands there; 0 = none. */
  #lengthAt(text: string, at: number): number {
    let longest = 0;
    for (const spelling of this.#byPiece.get(text.slice(at, at + pieceLength))?.keys() ?? [])
      if (spelling.length > longest && text.startsWith(spelling, at)) longest = spelling.length;
    return longest;
  }

  #learn(spelling: string): void {
    const piece = spelling.slice(0, pieceLength);
    const known = this.#byPiece.get(piece) ?? new Map<string, number>();
    this.#byPiece.set(piece, known);
    known.set(spelling, (known.get(spelling) ?? 0) + 1);
    this.#starts[pairAt(spelling, 0)] = (this.#starts[pairAt(spelling, 0)] ?? 0) + 1;
  }

  #forget(spelling: string): void {
    const piece = spelling.slice(0, pieceLength);
    const known = this.#byPiece.get(piece);
    const left = (known?.get(spelling) ?? 1) - 1;
    if (left > 0) known?.set(spelling, left);
    else known?.delete(spelling);
    if (known?.size === 0) this.#byPiece.delete(piece);
    this.#starts[pairAt(spelling, 0)] = (this.#starts[pairAt(spelling, 0)] ?? 1) - 1;
  }
}

function pairAt(text: string, at: number): number {
  return ((text.charCodeAt(at) & 0xff) << 8) | (text.charCodeAt(at + 1) & 0xff);
}

/** As it is, as it stands in a JSON string, and as part of an address. */
function spellings(secret: string): readonly string[] {
  const inJson = JSON.stringify(secret).slice(1, -1);
  return [...new Set([secret, inJson, encodeURIComponent(secret.toWellFormed())])];
}
