/**
 * Byte-level vocabularies write bytes as characters, so that every token is printable text: bytes that are printable in Latin-1 stand for
 * themselves, the other 68 take the characters from U+0100 on, in order. GPT-2 began it and every byte-level `tokenizer.json` follows it.
 */
const printableRanges: readonly (readonly [number, number])[] = [
  [0x21, 0x7e],
  [0xa1, 0xac],
  [0xae, 0xff],
];

function makeAlphabet(): string[] {
  let nextSubstitute = 0x100;
  return Array.from({ length: 256 }, (_, byte) => {
    const isPrintable = printableRanges.some(([low, high]) => byte >= low && byte <= high);
    return String.fromCharCode(isPrintable ? byte : nextSubstitute++);
  });
}

/** The character of each byte. */
export const byteCharacters: readonly string[] = makeAlphabet();

const bytesByCharacter: ReadonlyMap<string, number> = new Map(
  byteCharacters.map((character, byte) => [character, byte]),
);

/** Bytes that a token spells; null when a character of it stands for no byte. */
export function bytesOfToken(token: string): Uint8Array | null {
  const bytes = new Uint8Array(token.length);
  for (let index = 0; index < token.length; index++) {
    const byte = bytesByCharacter.get(token.charAt(index));
    if (byte === undefined) return null;
    bytes[index] = byte;
  }
  return bytes;
}
